/**
 * `npm run tool -- release`: executables for Linux on x64 and arm64, Debian packages, clients for
 * TypeScript and Python, an SBOM and SHA256SUMS in dist/release. The
 * same commit makes the same files.
 */
import { mkdirSync, readdirSync, rmSync } from "node:fs";
import { basename, join } from "node:path";
import { readOptions } from "./harness/options.ts";
import { VERSION } from "../src/service/version.ts";
import { buildClients } from "./release/clients/packages.ts";
import { buildDebianPackage } from "./release/debian-package.ts";
import { ARCHITECTURES, type Architecture, elfMachineOf } from "./release/elf.ts";
import { releaseBillOfMaterials } from "./release/sbom.ts";

const ROOT = new URL("..", import.meta.url).pathname;
const FOLDER = join(ROOT, "dist/release");

const run = (...argv: string[]): string => {
  const { success, stdout, exitCode } = Bun.spawnSync(argv, { cwd: ROOT, stdio: ["ignore", "pipe", "inherit"] });
  if (!success) throw new Error(`${argv.join(" ")} failed (status ${exitCode})`);
  return stdout.toString().trim();
};

const buildExecutable = ({ release, target, elfMachine }: Architecture): string => {
  const outfile = join(FOLDER, `postwarden-${VERSION}-linux-${release}`);
  run(process.execPath, join(ROOT, "scripts/build.ts"), `--target=${target}`, `--outfile=${outfile}`);
  const machine = elfMachineOf(outfile);
  if (machine !== elfMachine) throw new Error(`${outfile} is for machine ${machine ?? "unknown"}, not ${elfMachine}`);
  return outfile;
};

const sumsOf = async (names: readonly string[]): Promise<string> => {
  const lines: string[] = [];
  for (const name of names) {
    const hash = new Bun.CryptoHasher("sha256");
    for await (const chunk of Bun.file(join(FOLDER, name)).stream()) hash.update(chunk);
    lines.push(`${hash.digest("hex")}  ${name}\n`);
  }
  return lines.join("");
};

readOptions(import.meta.path, { options: {} });
const notes = await Bun.file(join(ROOT, "src/service/docs/manual/release-notes.md")).text();
if (!notes.split("\n").includes(`## ${VERSION}`))
  throw new Error(`The release notes have no section ${VERSION}: src/service/docs/manual/release-notes.md`);
rmSync(FOLDER, { recursive: true, force: true });
mkdirSync(FOLDER, { recursive: true });
const time = new Date(run("git", "log", "-1", "--format=%cI"));
for (const architecture of ARCHITECTURES) {
  const binary = buildExecutable(architecture);
  const deb = buildDebianPackage({
    ...{ binary, architecture: architecture.debian, version: VERSION, time, folder: FOLDER, compression: "gzip" },
  });
  console.log(`${basename(binary)}, ${basename(deb)}`);
}
console.log((await buildClients(FOLDER, VERSION)).join(", "));
const lockText = await Bun.file(join(ROOT, "package-lock.json")).text();
const npmText = run("npm", "sbom", "--sbom-format", "cyclonedx", "--loglevel=error");
await Bun.write(join(FOLDER, `postwarden-${VERSION}.cdx.json`), releaseBillOfMaterials(npmText, { lockText, time }));
await Bun.write(join(FOLDER, "SHA256SUMS"), await sumsOf(readdirSync(FOLDER).toSorted()));
console.log(`SBOM and SHA256SUMS are in ${FOLDER}.`);
