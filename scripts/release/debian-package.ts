import {
  chmodSync,
  copyFileSync,
  lutimesSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { gzipSync } from "node:zlib";
import { readConfig, settingsInForce } from "../../src/service/config.ts";
import { createProgram } from "../../src/cli/cli.ts";
import { systemIo } from "../../src/cli/io.ts";
import { commandTree } from "../../src/cli/command-tree.ts";
import { GUIDES } from "../../src/service/docs/guides.ts";
import { referenceGuides } from "../../src/service/manual.ts";
import { bashCompletion, fishCompletion, zshCompletion } from "../../src/cli/completion.ts";
import type { Architecture } from "./elf.ts";
import { manPage } from "./man-page.ts";

const ROOT = new URL("../..", import.meta.url).pathname;
const TEMPLATES = join(ROOT, "scripts/release/debian");
const MAINTAINER = "Postwarden developers <developers@postwarden.invalid>";
const KIB = 1024;
const TREE = commandTree(await createProgram(systemIo));

/** What dpkg-deb compresses with. gzip takes seconds, xz minutes for 15 % less, and Debian's archive tools do not accept zstd. */
type Compression = "gzip" | "none";

export interface DebianPackageOptions {
  readonly binary: string;
  readonly architecture: Architecture["debian"];
  /** Version of Postwarden; the package is its first revision. */
  readonly version: string;
  /** Time of every file, so that the same commit makes the same package. */
  readonly time: Date;
  readonly folder: string;
  readonly compression: Compression;
}

const settingNames = (): readonly string[] => {
  const config = readConfig({});
  if (!config.ok) throw new Error(config.error.join(" "));
  return Object.keys(settingsInForce(config.value));
};

const rfc5322Date = (time: Date): string => time.toUTCString().replace("GMT", "+0000");

const DOC = "usr/share/doc/postwarden";
const MANUAL = "src/service/docs/manual/";

/** The README among the files of the package: without its picture; what is not in the package is text instead of a link. */
const packagedReadme = (readme: string): string =>
  readme
    .replaceAll(/^!\[.*\n+/gm, "")
    .replaceAll(`](${MANUAL}`, "](manual/")
    .replaceAll(/\[([^\]]+)\]\((?!manual\/|#|https:)[^)]+\)/g, "$1");

/** The service alone has the pages about the API. */
const SERVED_LINK = /\[([^\]]+)\]\((reference-(?:api|events)[a-z-]*)\.md[^)]*\)/g;

/** The README, the guides and the reference, whose links lead to each other. Throws when one leads nowhere. */
const documentation = (): Readonly<Record<string, string>> => {
  const readme = packagedReadme(readFileSync(join(ROOT, "README.md"), "utf8"));
  const manual = [...GUIDES, ...referenceGuides(TREE)].map(
    ({ slug, text }) => [`manual/${slug}.md`, text.replaceAll(SERVED_LINK, "$1 (/docs/$2 of the service)")] as const,
  );
  const files = new Map([["README.md", readme], ...manual]);
  for (const [path, text] of files)
    for (const [, link = ""] of text.matchAll(/\]\((?!https?:|#)([^)#\s]+)/g))
      if (!files.has(join(dirname(path), link)))
        throw new Error(`${path} leads to ${link}, which the package does not have`);
  return Object.fromEntries([...files].map(([path, text]) => [`${DOC}/${path}`, text]));
};

/** Paths and contents of the files that are made here; those that are programs follow in `installed`. */
const generatedFiles = ({ version, time }: DebianPackageOptions): Readonly<Record<string, string | Uint8Array>> => {
  const tree = TREE;
  const zip = (text: string) => gzipSync(text, { level: 9 });
  return {
    "usr/share/man/man1/postwarden.1.gz": zip(
      manPage(tree, { version, date: time.toISOString().slice(0, 10), settings: settingNames(), topics: GUIDES }),
    ),
    "usr/share/bash-completion/completions/postwarden": bashCompletion(tree),
    "usr/share/zsh/vendor-completions/_postwarden": zshCompletion(tree),
    "usr/share/fish/vendor_completions.d/postwarden.fish": fishCompletion(tree),
    ...documentation(),
    [`${DOC}/changelog.Debian.gz`]: zip(
      `postwarden (${version}-1) unstable; urgency=medium\n\n  * Release ${version}.\n\n -- ${MAINTAINER}  ${rfc5322Date(time)}\n`,
    ),
  };
};

/** Where the files of the repository are installed. */
const COPIED: Readonly<Record<string, string>> = {
  [join(TEMPLATES, "postwarden.service")]: "lib/systemd/system/postwarden.service",
  [join(TEMPLATES, "sysusers.conf")]: "usr/lib/sysusers.d/postwarden.conf",
  [join(TEMPLATES, "postwarden.env")]: "etc/postwarden.env",
  [join(TEMPLATES, "copyright")]: `${DOC}/copyright`,
  [join(TEMPLATES, "lintian-overrides")]: "usr/share/lintian/overrides/postwarden",
  [join(ROOT, "fixtures/proxy/nginx.conf")]: `${DOC}/examples/nginx.conf`,
  [join(ROOT, "fixtures/proxy/Caddyfile")]: `${DOC}/examples/Caddyfile`,
  [join(ROOT, "fixtures/proxy/Caddyfile.mta-sts")]: `${DOC}/examples/Caddyfile.mta-sts`,
  [join(ROOT, "fixtures/monitoring/alerts.yaml")]: `${DOC}/examples/alerts.yaml`,
  [join(ROOT, "fixtures/monitoring/grafana.json")]: `${DOC}/examples/grafana.json`,
};

const MODES: Readonly<Record<string, number>> = { "etc/postwarden.env": 0o640, "usr/bin/postwarden": 0o755 };

const filesBelow = (folder: string): readonly string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name));

const controlFiles = (
  { architecture, version }: DebianPackageOptions,
  { installedKib, sums }: { readonly installedKib: number; readonly sums: string },
): Readonly<Record<string, string>> => ({
  control: [
    "Package: postwarden",
    `Version: ${version}-1`,
    `Architecture: ${architecture}`,
    `Maintainer: ${MAINTAINER}`,
    `Installed-Size: ${installedKib}`,
    // The executable needs glibc only; the scripts need the rest.
    "Depends: libc6 (>= 2.28), systemd (>= 245), init-system-helpers (>= 1.52)",
    "Recommends: ca-certificates",
    "Suggests: unbound, nginx | caddy",
    "Section: mail",
    "Priority: optional",
    "Description: email verification, blocklist monitoring and DMARC reports",
    " Postwarden verifies email addresses by querying their mail servers, monitors",
    " domains and IP addresses on DNS blocklists, and receives the DMARC reports",
    " about your domains. It is one executable with an embedded database and an",
    " HTTP API.",
    "",
  ].join("\n"),
  conffiles: "/etc/postwarden.env\n",
  md5sums: sums,
});

const md5Sums = (root: string): string =>
  filesBelow(root)
    .map((path) => path.slice(root.length + 1))
    .filter((path) => path !== "etc/postwarden.env")
    .toSorted()
    .map((path) => `${new Bun.CryptoHasher("md5").update(Bun.mmap(join(root, path))).digest("hex")}  ${path}\n`)
    .join("");

/** Sets the time of everything below, and modes that do not depend on the umask. */
const normalize = (root: string, time: Date): void => {
  for (const entry of readdirSync(root, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isDirectory()) chmodSync(path, 0o755);
    lutimesSync(path, time, time);
  }
  chmodSync(root, 0o755);
  lutimesSync(root, time, time);
};

const put = (root: string, path: string, content: string | Uint8Array | { readonly copyOf: string }): void => {
  const target = join(root, path);
  mkdirSync(dirname(target), { recursive: true });
  if (typeof content === "object" && "copyOf" in content) copyFileSync(content.copyOf, target);
  else writeFileSync(target, content);
  chmodSync(target, MODES[path] ?? 0o644);
};

/**
 * Builds `postwarden_VERSION-1_ARCHITECTURE.deb` with dpkg-deb and returns its path. The same input makes the same bytes.
 */
export const buildDebianPackage = (options: DebianPackageOptions): string => {
  const { binary, architecture, version, time, folder, compression } = options;
  const root = mkdtempSync(join(tmpdir(), "postwarden-deb-"));
  const outfile = join(folder, `postwarden_${version}-1_${architecture}.deb`);
  try {
    put(root, "usr/bin/postwarden", { copyOf: binary });
    for (const [source, path] of Object.entries(COPIED)) put(root, path, { copyOf: source });
    for (const [path, content] of Object.entries(generatedFiles(options))) put(root, path, content);
    const bytes = filesBelow(root).reduce((total, path) => total + statSync(path).size, 0);
    const control = controlFiles(options, { installedKib: Math.ceil(bytes / KIB), sums: md5Sums(root) });
    for (const [name, text] of Object.entries(control)) put(root, `DEBIAN/${name}`, text);
    for (const name of ["postinst", "prerm", "postrm"]) {
      put(root, `DEBIAN/${name}`, { copyOf: join(TEMPLATES, name) });
      chmodSync(join(root, "DEBIAN", name), 0o755);
    }
    normalize(root, time);
    const made = Bun.spawnSync(["dpkg-deb", "--root-owner-group", `-Z${compression}`, "--build", root, outfile], {
      env: { PATH: "/usr/bin:/bin", SOURCE_DATE_EPOCH: String(Math.floor(time.getTime() / 1_000)) },
      stdio: ["ignore", "ignore", "inherit"],
    });
    if (!made.success) throw new Error(`dpkg-deb failed (status ${made.exitCode}). It needs Debian's package dpkg.`);
    return outfile;
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
};
