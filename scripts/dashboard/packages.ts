/** The Debian packages that the dashboard's tools use. */
import { existsSync } from "node:fs";
import { findFaketime } from "../harness/binary.ts";

const APT_MS_MAX = 240_000;

/** Installs what is missing, as root; otherwise says what to install. */
export const ensurePackages = (wanted: ReadonlyArray<"chromium" | "faketime">): void => {
  const missing = wanted.filter((name) =>
    name === "faketime" ? findFaketime() === null : !existsSync("/usr/bin/chromium"),
  );
  if (missing.length === 0) return;
  const sentence = `These Debian packages are missing: ${missing.join(" ")}.`;
  if (process.getuid?.() !== 0 || !existsSync("/usr/bin/apt-get"))
    throw new Error(`${sentence} Install them with apt-get.`);
  console.error(`${sentence} Installing them …`);
  const apt = (...args: string[]) =>
    Bun.spawnSync(["apt-get", "-q", ...args], {
      ...{ env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", DEBIAN_FRONTEND: "noninteractive" }, timeout: APT_MS_MAX },
      stdio: ["ignore", "ignore", "inherit"],
    }).exitCode === 0;
  if (!apt("update") || !apt("install", "-y", "--no-install-recommends", ...missing))
    throw new Error(`${sentence} apt-get failed.`);
};
