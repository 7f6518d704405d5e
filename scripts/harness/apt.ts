import { tmpdir } from "node:os";
import { join } from "node:path";

/** apt-get, one run at a time on this machine: a second one would fail at the locks of the first. */
export const APT_GET: readonly string[] = ["flock", join(tmpdir(), "postwarden-apt-get.lock"), "apt-get"];
