import { describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { Glob } from "bun";

/** Which folder may import from which; each may import from itself. There are no cycles. */
const BELOW_DASHBOARD = ["foundation", "accounts", "notifications", "blocklist", "dmarc", "verify", "bulk", "doctor"];
const FOLDERS: Readonly<Record<string, readonly string[]>> = {
  foundation: [],
  accounts: ["foundation"],
  notifications: ["foundation"],
  blocklist: ["foundation", "notifications"],
  dmarc: ["foundation", "notifications"],
  verify: ["foundation", "accounts", "blocklist"],
  bulk: ["foundation", "accounts", "notifications", "blocklist", "verify"],
  doctor: ["foundation", "blocklist", "dmarc", "verify"],
  dashboard: BELOW_DASHBOARD,
  service: [...BELOW_DASHBOARD, "dashboard"],
  cli: [...BELOW_DASHBOARD, "dashboard", "service"],
  "main.ts": ["cli", "foundation"],
};

/**
 * The parts of a folder, from the bottom up. A part imports from those of the steps before its own; what is in no part is above
 * all of them.
 */
const PARTS: Readonly<Record<string, ReadonlyArray<readonly string[]>>> = {
  foundation: [["base"], ["db", "http", "mail", "net"]],
  accounts: [["billing", "suppress"], ["usage"]],
  notifications: [["channels", "windows"], ["mail", "webhooks"], ["settings"]],
  blocklist: [["lists"]],
  dmarc: [
    ["records/services", "records/record"],
    ["records/domains", "records/sts", "reports/report", "reports/authentication", "insight/addresses"],
    ["reports/ingest"],
    ["reports/mailbox", "insight/sources", "insight/health"],
    ["insight/queries"],
    ["insight/advice", "insight/sts"],
    ["alerts/rules"],
    ["alerts/overview"],
  ],
  verify: [["smtp", "reply-rules"]],
  bulk: [["reading"], ["results"], ["run"], ["arrival"]],
  service: [["metrics", "docs", "erase", "mcp"]],
};

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
    allowedIn: /^(foundation\/db\/|(?:[a-z]+\/){1,3}(?:[a-z]+-)*(?:store|statements)\.ts$)/,
  },
  {
    what: "the environment outside service/config",
    pattern: /\b(Bun|process)\.env\b/,
    allowedIn: /^service\/config\.ts$/,
  },
  {
    what: "the clock outside base/clock",
    pattern: /\bDate\.now\(|\bnew Date\(\)|\bperformance\.now\(|\bset(Timeout|Interval)\(|\bBun\.sleep/,
    allowedIn: /^foundation\/base\/clock\.ts$/,
  },
  {
    what: "randomness outside base/secrets",
    pattern: /\bMath\.random\(/,
    allowedIn: /^foundation\/base\/secrets\.ts$/,
  },
  { what: "console", pattern: /\bconsole\./, allowedIn: /^$/ },
  { what: "a default export", pattern: /^export default /m, allowedIn: /\.d\.ts$/ },
  { what: "a re-export", pattern: /^export (type )?(\*|\{[^}]*\}) from /m, allowedIn: /^$/ },
  { what: "an enum", pattern: /^(export )?(const )?enum /m, allowedIn: /^$/ },
  { what: "unfinished work", pattern: /\b(TODO|FIXME|XXX|HACK)\b/, allowedIn: /^$/ },
];

const LINES_MAX = 400;

const isTest = (path: string): boolean => /\.test\.tsx?$/.test(path) || path.startsWith("testing/");
const folderOf = (path: string): string => path.split("/", 1)[0] ?? "";

/** How far up in its folder a file is: the step of its part. */
const stepOf = (path: string): { readonly part: string | null; readonly step: number } => {
  const [folder = ""] = path.split("/", 1);
  const steps = PARTS[folder] ?? [];
  const at = steps.findIndex((parts) => parts.some((part) => path.startsWith(`${folder}/${part}/`)));
  const part = steps[at]?.find((one) => path.startsWith(`${folder}/${one}/`)) ?? null;
  return { part, step: at === -1 ? steps.length : at };
};

/** What a file imports by relative imports: paths below src, or the names of other folders at the top. */
const importedPaths = ({ path, text }: Source): string[] => {
  const specifiers = [...text.matchAll(/(?:from|import) "(\.{1,2}\/[^"]+)"|import\("(\.{1,2}\/[^"]+)"\)/g)];
  return specifiers.flatMap(([, fixed, loaded]) => {
    const resolved = new URL(fixed ?? loaded ?? "", `file:///src/${path}`).pathname;
    return resolved.startsWith("/src/") ? [resolved.slice("/src/".length)] : [];
  });
};

const layerProblems = (source: Source): string[] => {
  const own = folderOf(source.path);
  return importedPaths(source).flatMap((path) => {
    const folder = folderOf(path);
    if (folder === "testing") return [`${source.path} imports testing, which only tests may`];
    if (folder !== own)
      return FOLDERS[own]?.includes(folder) === true ? [] : [`${source.path} imports ${folder}, which ${own} may not`];
    const [from, to] = [stepOf(source.path), stepOf(path)];
    return from.part === to.part || to.step < from.step
      ? []
      : [`${source.path} imports ${path}, which is not below it`];
  });
};

/** Files that import each other, directly or not, types included: each circle once, from its first file in the alphabet. */
const circles = (sources: readonly Source[]): string[] => {
  const imports = new Map(sources.map((source) => [source.path, importedPaths(source)]));
  const reachable = (from: string): ReadonlySet<string> => {
    const found = new Set<string>();
    const left = [...(imports.get(from) ?? [])];
    for (let path = left.pop(); path !== undefined; path = left.pop()) {
      if (found.has(path)) continue;
      found.add(path);
      left.push(...(imports.get(path) ?? []));
    }
    return found;
  };
  const reached = new Map([...imports.keys()].map((path) => [path, reachable(path)]));
  const groups = [...imports.keys()].map((path) =>
    [...(reached.get(path) ?? [])]
      .filter((other) => reached.get(other)?.has(path) === true)
      .toSorted()
      .join(", "),
  );
  return [...new Set(groups.filter((group) => group !== ""))];
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
  const root = new URL("..", import.meta.url).pathname;
  const paths = [...new Glob("**/*.{ts,tsx}").scanSync(root)].filter((path) => !isTest(path));
  return Promise.all(paths.map(async (path) => ({ path, text: await Bun.file(root + path).text() })));
};

describe("the source layout", () => {
  test("imports only downwards", async () => {
    expect((await readSources()).flatMap(layerProblems)).toEqual([]);
  });

  test("has no circles of imports", async () => {
    expect(circles(await readSources())).toEqual([]);
  });

  test("keeps what is banned out of where it is banned", async () => {
    expect((await readSources()).flatMap(banProblems)).toEqual([]);
  });

  test("has no file of more than 400 lines", async () => {
    expect((await readSources()).flatMap(lengthProblems)).toEqual([]);
  });

  test("has a door to each part of the product, and opens it in service/compose.ts or in a page or command", async () => {
    const parts = ["accounts", "notifications", "blocklist", "dmarc", "verify", "bulk", "doctor", "dashboard"];
    const sources = await readSources();
    const doors = parts.map((part) => `${part}/open.ts`);
    const opened = new Set(sources.flatMap((source) => (doors.includes(source.path) ? [] : importedPaths(source))));
    expect(doors.filter((door) => !opened.has(door))).toEqual([]);
  });

  test("has twelve folders and two files, and src/README.md names them", async () => {
    const root = new URL("..", import.meta.url).pathname;
    const entries = readdirSync(root, { withFileTypes: true })
      .map((entry) => (entry.isDirectory() ? `${entry.name}/` : entry.name))
      .toSorted();
    const folders = Object.keys(FOLDERS).filter((name) => name !== "main.ts");
    expect(entries).toEqual([...[...folders, "testing"].map((name) => `${name}/`), "README.md", "main.ts"].toSorted());
    const guide = await Bun.file(`${root}README.md`).text();
    const parts = Object.values(PARTS).flatMap((steps) => steps.flat().map((part) => `${part.split("/", 1)[0]}/`));
    const places = [...entries.filter((entry) => entry !== "README.md"), ...parts];
    expect(places.filter((place) => !guide.includes(`\`${place}\``))).toEqual([]);
    const files = [...new Glob("**/*.{ts,tsx}").scanSync(root)].map((path) => `/${path}`);
    const named = [...guide.matchAll(/`([\w./-]+\.tsx?)`/g)].map(([, name = ""]) => name);
    expect(named.filter((name) => !files.some((path) => path.endsWith(`/${name}`)))).toEqual([]);
  });
});

describe("the checks can fail", () => {
  test.each([
    ["foundation/base/a.ts", "../../verify/engine.ts", "imports verify, which foundation may not"],
    ["foundation/base/a.ts", "../db/open.ts", "imports foundation/db/open.ts, which is not below it"],
    ["foundation/net/a.ts", "../db/open.ts", "imports foundation/db/open.ts, which is not below it"],
    ["verify/a.ts", "../cli/io.ts", "imports cli, which verify may not"],
    ["verify/smtp/a.ts", "../engine.ts", "imports verify/engine.ts, which is not below it"],
    ["verify/a.ts", "../testing/clock.ts", "imports testing, which only tests may"],
    [
      "dmarc/reports/report/a.ts",
      "../ingest/ingest.ts",
      "imports dmarc/reports/ingest/ingest.ts, which is not below it",
    ],
    ["verify/a.ts", "../dmarc/records/record/record.ts", "imports dmarc, which verify may not"],
    ["service/compose.ts", "../cli/io.ts", "imports cli, which service may not"],
    ["main.ts", "./service/config.ts", "imports service, which main.ts may not"],
  ])("%s with an import of %s", (path, specifier, problem) => {
    for (const text of [`import { x } from "${specifier}";`, `const x = await import("${specifier}");`])
      expect(layerProblems({ path, text })).toEqual([`${path} ${problem}`]);
  });

  test("a circle", () => {
    const imports = (path: string, specifier: string) => ({ path, text: `import type { x } from "${specifier}";` });
    const ring = [imports("a/a.ts", "./b.ts"), imports("a/b.ts", "./c.ts"), imports("a/c.ts", "./a.ts")];
    expect(circles([...ring, imports("a/d.ts", "./a.ts")])).toEqual(["a/a.ts, a/b.ts, a/c.ts"]);
    expect(circles([...ring.slice(1), imports("a/d.ts", "./a.ts")])).toEqual([]);
  });

  test.each([
    ["verify/a.ts", 'import { sql } from "drizzle-orm";', "drizzle outside db, stores and their statements"],
    ["net/a.ts", "const x = Bun.env.HOME;", "the environment outside service/config"],
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
    expect(lengthProblems({ path: "a.ts", text: "\n".repeat(400) })).toHaveLength(1);
    expect(lengthProblems({ path: "a.ts", text: "\n".repeat(399) })).toEqual([]);
  });

  test("allowed things pass", () => {
    expect(layerProblems({ path: "verify/a.ts", text: 'import { x } from "../foundation/net/dns.ts";' })).toEqual([]);
    expect(layerProblems({ path: "verify/a.ts", text: 'import { x } from "./smtp/pool.ts";' })).toEqual([]);
    expect(banProblems({ path: "foundation/db/a.ts", text: 'import { sql } from "drizzle-orm";' })).toEqual([]);
    expect(banProblems({ path: "verify/a.ts", text: "// no Date.now() here\nnew Date(5)" })).toEqual([]);
  });
});
