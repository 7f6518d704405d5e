// Adds to package-lock.json the optional packages of other platforms that `npm install` left out because the registry
// in use did not carry them: without their entries `npm ci` refuses the lock file. Run after `npm install`.
import { readFileSync, writeFileSync } from "node:fs";

const path = new URL("../package-lock.json", import.meta.url);
const lock = JSON.parse(readFileSync(path, "utf8"));
const OPERATING_SYSTEMS = [
  "android",
  "darwin",
  "freebsd",
  "linux",
  "openharmony",
  "win32",
  "aix",
  "netbsd",
  "openbsd",
  "sunos",
];
const PROCESSORS = ["arm64", "x64", "arm", "ia32", "ppc64", "riscv64", "s390x", "loong64", "mips64el", "wasm32"];

const platformOf = (name) => {
  const parts = name.split("/").at(-1).split("-");
  const os = OPERATING_SYSTEMS.filter((known) => parts.includes(known));
  const cpu = PROCESSORS.filter((known) => parts.includes(known));
  return { ...(cpu.length > 0 ? { cpu } : {}), ...(os.length > 0 ? { os } : {}) };
};

for (const entry of Object.values(lock.packages)) {
  for (const [name, version] of Object.entries(entry.optionalDependencies ?? {})) {
    const key = `node_modules/${name}`;
    if (lock.packages[key] !== undefined) continue;
    lock.packages[key] = { version, ...platformOf(name), ...(entry.dev ? { dev: true } : {}), optional: true };
    console.error(`added ${name}@${version}`);
  }
}

const keys = Object.keys(lock.packages).toSorted((a, b) => (a < b ? -1 : 1));
lock.packages = Object.fromEntries(keys.map((key) => [key, lock.packages[key]]));
writeFileSync(path, `${JSON.stringify(lock, null, 2)}\n`);
