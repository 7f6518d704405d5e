/** apt-get, one run at a time on this machine: a second one would fail at the locks of the first. */
export const APT_GET: readonly string[] = ["flock", "/tmp/postwarden-apt-get.lock", "apt-get"];
