import { describe, expect, test } from "bun:test";
import { Glob } from "bun";

/** Which folder may import from which; a folder may always import from itself. There are no cycles. */
const LAYERS: Readonly<Record<string, readonly string[]>> = {
  base: [],
  mail: ["base"],
  db: ["base"],
  net: ["base"],
  http: ["base"],
  probe: ["base", "net"],
  metrics: ["base", "db", "net"],
  docs: ["base", "http"],
  dnsbl: ["base", "net"],
  billing: ["base", "db", "http"],
  accounts: ["base", "mail", "db", "http", "billing"],
  usage: ["base", "db", "http", "billing"],
  suppress: ["base", "db", "mail"],
  webhooks: ["base", "db", "net", "http"],
  notify: ["base", "db", "net"],
  notifications: ["base", "db", "net", "http", "mail", "dnsbl", "notify", "webhooks"],
  blocklist: ["base", "db", "net", "http", "mail", "dnsbl", "notify", "webhooks"],
  dmarc: ["base", "http"],
  "dmarc/services": ["base", "mail"],
  "dmarc/record": ["base", "mail", "net"],
  "dmarc/report": ["base", "mail", "dmarc/services"],
  "dmarc/domains": ["base", "mail", "db", "net", "http", "webhooks", "dmarc/services", "dmarc/record"],
  "dmarc/authentication": ["base", "mail", "db", "net", "dmarc/record"],
  "dmarc/ingest": [
    "base",
    "db",
    "net",
    "http",
    "mail",
    "dmarc/services",
    "dmarc/report",
    "dmarc/domains",
    "dmarc/authentication",
  ],
  "dmarc/mailbox": ["base", "db", "net", "dmarc/report", "dmarc/ingest"],
  "dmarc/addresses": ["base", "mail", "db", "net"],
  "dmarc/sources": ["base", "mail", "db", "http", "dmarc/services", "dmarc/domains", "dmarc/ingest", "dmarc/addresses"],
  "dmarc/queries": [
    "base",
    "mail",
    "db",
    "http",
    "dmarc/report",
    "dmarc/domains",
    "dmarc/ingest",
    "dmarc/authentication",
    "dmarc/addresses",
    "dmarc/sources",
  ],
  "dmarc/health": [
    "base",
    "mail",
    "db",
    "net",
    "http",
    "dmarc/record",
    "dmarc/domains",
    "dmarc/report",
    "dmarc/ingest",
  ],
  "dmarc/advice": [
    "base",
    "mail",
    "http",
    "net",
    "dmarc/services",
    "dmarc/record",
    "dmarc/domains",
    "dmarc/health",
    "dmarc/ingest",
    "dmarc/report",
    "dmarc/sources",
    "dmarc/queries",
  ],
  "dmarc/alerts": [
    "base",
    "mail",
    "db",
    "http",
    "net",
    "notify",
    "dmarc/services",
    "dmarc/report",
    "dmarc/domains",
    "dmarc/ingest",
    "dmarc/sources",
    "dmarc/queries",
    "dmarc/advice",
  ],
  "dmarc/overview": [
    "base",
    "mail",
    "db",
    "http",
    "notify",
    "dmarc/services",
    "dmarc/domains",
    "dmarc/health",
    "dmarc/sources",
    "dmarc/queries",
    "dmarc/advice",
    "dmarc/alerts",
  ],
  verify: ["base", "mail", "db", "net", "http", "probe", "billing", "dnsbl", "usage"],
  bulk: ["base", "mail", "db", "http", "probe", "billing", "verify", "webhooks", "usage"],
  dashboard: [
    "base",
    "doctor",
    "net",
    "http",
    "mail",
    "billing",
    "accounts",
    "usage",
    "verify",
    "bulk",
    "suppress",
    "dnsbl",
    "webhooks",
    "notifications",
    "notify",
    "blocklist",
    "dmarc",
  ],
  erase: ["base", "mail", "db", "billing", "blocklist", "bulk", "suppress", "verify", "dmarc/report"],
  doctor: ["base", "mail", "db", "net", "probe", "dnsbl", "dmarc/record"],
  cli: [
    "base",
    "doctor",
    "erase",
    "net",
    "db",
    "http",
    "mail",
    "billing",
    "accounts",
    "usage",
    "verify",
    "bulk",
    "suppress",
    "root",
    "dnsbl",
    "webhooks",
    "notifications",
    "notify",
    "blocklist",
    "dmarc",
  ],
  root: [
    "base",
    "doctor",
    "erase",
    "net",
    "db",
    "http",
    "mail",
    "probe",
    "billing",
    "accounts",
    "usage",
    "verify",
    "bulk",
    "suppress",
    "dnsbl",
    "webhooks",
    "notify",
    "notifications",
    "blocklist",
    "dmarc",
    "metrics",
    "docs",
    "dashboard",
  ],
};
const ONLY_MAIN_IMPORTS = "cli";
const FIXTURES = "fixtures";

interface Source {
  readonly path: string;
  readonly text: string;
}

interface Ban {
  readonly what: string;
  readonly pattern: RegExp;
  readonly allowedIn: RegExp;
}

const BANS: readonly Ban[] = [
  {
    what: "drizzle outside db, stores and their statements",
    pattern: /from "drizzle-orm/,
    allowedIn: /^(db\/|(?:[a-z]+\/){1,2}(?:[a-z]+-)*(?:store|statements)\.ts$)/,
  },
  { what: "the environment outside config", pattern: /\b(Bun|process)\.env\b/, allowedIn: /^config\.ts$/ },
  {
    what: "the clock outside base/clock",
    pattern: /\bDate\.now\(|\bnew Date\(\)|\bperformance\.now\(|\bset(Timeout|Interval)\(|\bBun\.sleep/,
    allowedIn: /^base\/clock\.ts$/,
  },
  { what: "randomness outside base/secrets", pattern: /\bMath\.random\(/, allowedIn: /^base\/secrets\.ts$/ },
  { what: "console", pattern: /\bconsole\./, allowedIn: /^$/ },
  { what: "a default export", pattern: /^export default /m, allowedIn: /\.d\.ts$/ },
  { what: "a re-export", pattern: /^export (type )?(\*|\{[^}]*\}) from /m, allowedIn: /^$/ },
  { what: "an enum", pattern: /^(export )?(const )?enum /m, allowedIn: /^$/ },
  { what: "unfinished work", pattern: /\b(TODO|FIXME|XXX|HACK)\b/, allowedIn: /^$/ },
];

const LINES_MAX = 300;

const isTest = (path: string): boolean => /\.test\.tsx?$/.test(path) || path.startsWith("testing/");
/** The outer folder, or of a slice that is divided by the table above, the inner one. */
const folderOf = (path: string): string => {
  const [outer = "", inner = ""] = path.split("/").slice(0, -1);
  if (`${outer}/${inner}` in LAYERS) return `${outer}/${inner}`;
  return outer === "" ? "root" : outer;
};

/** Whether a folder may import another: where the whole slice is named, all that is in it. */
const isAllowed = (own: string, folder: string): boolean => {
  const allowed = LAYERS[own] ?? [];
  return (
    allowed.includes(folder) ||
    (own.split("/")[0] !== folder.split("/")[0] && allowed.includes(folder.split("/")[0] ?? ""))
  );
};

/** The folders under src (or `fixtures`) that a file imports from, by its relative imports. */
const importedFolders = ({ path, text }: Source): string[] => {
  const specifiers = [...text.matchAll(/(?:from|import) "(\.{1,2}\/[^"]+)"/g)].map((match) => match[1] ?? "");
  return specifiers.map((specifier) => {
    const resolved = new URL(specifier, `file:///src/${path}`).pathname;
    return resolved.startsWith("/src/") ? folderOf(resolved.slice("/src/".length)) : (resolved.split("/")[1] ?? "");
  });
};

const layerProblems = (source: Source): string[] => {
  const own = folderOf(source.path);
  return importedFolders(source).flatMap((folder) => {
    if (folder === own || folder === FIXTURES || folder === "drizzle" || folder === "package.json") return [];
    if (folder === "testing") return [`${source.path} imports testing, which only tests may`];
    if (source.path === "main.ts" && folder === ONLY_MAIN_IMPORTS) return [];
    // What a divided slice has at its top binds its parts together.
    if (folder.startsWith(`${own}/`)) return [];
    return isAllowed(own, folder) ? [] : [`${source.path} imports ${folder}, which ${own} may not`];
  });
};

const banProblems = ({ path, text }: Source): string[] => {
  const code = text.replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, "");
  return BANS.filter(({ pattern, allowedIn }) => pattern.test(code) && !allowedIn.test(path)).map(
    ({ what }) => `${path}: ${what}`,
  );
};

const lengthProblems = ({ path, text }: Source): string[] =>
  text.split("\n").length > LINES_MAX ? [`${path} has more than ${LINES_MAX} lines`] : [];

const readSources = async (): Promise<Source[]> => {
  const root = new URL(".", import.meta.url).pathname;
  const paths = [...new Glob("**/*.{ts,tsx}").scanSync(root)].filter((path) => !isTest(path));
  return Promise.all(paths.map(async (path) => ({ path, text: await Bun.file(root + path).text() })));
};

describe("the source layout", () => {
  test("imports only downwards", async () => {
    expect((await readSources()).flatMap(layerProblems)).toEqual([]);
  });

  test("keeps what is banned out of where it is banned", async () => {
    expect((await readSources()).flatMap(banProblems)).toEqual([]);
  });

  test("has no file of more than 300 lines", async () => {
    expect((await readSources()).flatMap(lengthProblems)).toEqual([]);
  });

  test("is described: src/README.md names every folder and every file at the top of src", async () => {
    const guide = await Bun.file(new URL("README.md", import.meta.url)).text();
    const places = (await readSources()).map(({ path }) => (path.includes("/") ? `${folderOf(path)}/` : path));
    expect([...new Set(places)].filter((place) => !guide.includes(`\`${place}\``))).toEqual([]);
  });
});

describe("the checks can fail", () => {
  test.each([
    ["base/a.ts", 'import { x } from "../db/open.ts";', "base/a.ts imports db, which base may not"],
    ["net/a.ts", 'import type { x } from "../verify/engine.ts";', "net/a.ts imports verify, which net may not"],
    ["verify/a.ts", 'import "../cli/io.ts";', "verify/a.ts imports cli, which verify may not"],
    ["probe/a.ts", 'import { x } from "../testing/clock.ts";', "probe/a.ts imports testing, which only tests may"],
    [
      "dmarc/report/a.ts",
      'import { x } from "../ingest/ingest.ts";',
      "dmarc/report/a.ts imports dmarc/ingest, which dmarc/report may not",
    ],
    [
      "verify/a.ts",
      'import { x } from "../dmarc/record/record.ts";',
      "verify/a.ts imports dmarc/record, which verify may not",
    ],
    ["compose.ts", 'import { x } from "./cli/io.ts";', "compose.ts imports cli, which root may not"],
  ])("%s with %s", (path, text, problem) => {
    expect(layerProblems({ path, text })).toEqual([problem]);
  });

  test.each([
    ["verify/a.ts", 'import { sql } from "drizzle-orm";', "drizzle outside db, stores and their statements"],
    ["net/a.ts", "const x = Bun.env.HOME;", "the environment outside config"],
    ["verify/a.ts", "const now = Date.now();", "the clock outside base/clock"],
    ["verify/a.ts", "setTimeout(() => {}, 1);", "the clock outside base/clock"],
    ["verify/a.ts", "const x = Math.random();", "randomness outside base/secrets"],
    ["verify/a.ts", 'console.log("x");', "console"],
    ["verify/a.ts", "export default 1;", "a default export"],
    ["verify/a.ts", 'export { x } from "./b.ts";', "a re-export"],
    ["verify/a.ts", "const x = 1; TODO", "unfinished work"],
  ])("%s with %s", (path, text, what) => {
    expect(banProblems({ path, text })).toEqual([`${path}: ${what}`]);
  });

  test("a long file", () => {
    expect(lengthProblems({ path: "a.ts", text: "\n".repeat(300) })).toHaveLength(1);
    expect(lengthProblems({ path: "a.ts", text: "\n".repeat(299) })).toEqual([]);
  });

  test("allowed things pass", () => {
    expect(layerProblems({ path: "verify/a.ts", text: 'import { x } from "../net/dns.ts";' })).toEqual([]);
    expect(banProblems({ path: "db/a.ts", text: 'import { sql } from "drizzle-orm";' })).toEqual([]);
    expect(banProblems({ path: "verify/a.ts", text: "// no Date.now() here\nnew Date(5)" })).toEqual([]);
  });
});
