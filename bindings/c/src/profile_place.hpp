// SPDX-License-Identifier: Apache-2.0
// Where the operators of a profile were called from.
#pragma once

namespace perigee::api {

/// Gives the last operator of this thread's profile, and all that was noted since it began, a place.
void place_last(const char* known);

/// The place of the call of pgc_profile_site that was last answered with "not known", if it may be kept.
void remember_site(const char* known);

}  // namespace perigee::api
