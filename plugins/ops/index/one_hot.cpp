// SPDX-License-Identifier: Apache-2.0
#include "../rules.hpp"

namespace pg::schema_one_hot {
namespace {

PG_OP("one_hot")
    .category("index")
    .doc("A new last axis that is 1 at the index and 0 elsewhere. An index out of range is an error that names it.")
    .input("index", kInteger, "[...]: from 0")
    .attr<int>("classes", 0, "size of the new axis")
    .required()
    .output("y", "int64 [..., classes]")
    .traits(PG_OP_NO_GRAD)
    .shape([](ShapeContext& c) {
      c.check_index(0);
      int64_t classes = c.get<int>("classes");
      c.need(classes >= 1, "classes is %lld; expected at least 1", static_cast<long long>(classes));
      Shape shape = c.shape(0);
      shape.push(classes);
      c.out(0).set(PG_I64, shape);
    });

}  // namespace
}  // namespace pg::schema_one_hot
