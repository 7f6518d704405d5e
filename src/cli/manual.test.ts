import { describe, expect, test } from "bun:test";
import { Glob } from "bun";
import { assetPath, findAsset } from "../dashboard/frame.tsx";
import { HELP_SECTIONS } from "../dashboard/help.ts";
import { CHECK_SECTIONS } from "../doctor/doctor-check.ts";
import "../doctor/open.ts";
import { GUIDES, sectionOf } from "../service/docs/guides.ts";
import { headingsOf, renderManualPage } from "../service/docs/manual-page.ts";
import { searchIndexOf } from "../service/docs/search-index.ts";
import { EVENT_DOCS } from "../service/event-docs.ts";
import { interfaceDocument } from "../service/interface-document.ts";
import { manualPages } from "../service/manual.ts";
import { Metrics } from "../service/metrics/metrics.ts";
import { settingRows } from "../service/settings.ts";
import { createTestClock } from "../testing/clock.ts";
import { SUB_STATUSES } from "../verify/result.ts";
import { createProgram } from "./cli.ts";
import { allCommands, commandTree } from "./command-tree.ts";
import { systemIo } from "./io.ts";

const KB = 1_000;
const commands = commandTree(await createProgram(systemIo));
const pages = await manualPages({
  describe: () => interfaceDocument({ version: "", baseUrl: "", description: "" }),
  commands: async () => commands,
});
const texts = new Map(pages.map((page) => [page.slug, renderManualPage(page, pages).text]));
const idsIn = (text: string): readonly string[] => [...text.matchAll(/ id="([^"]+)"/g)].map(([, id = ""]) => id);
const brokenIn = (slug: string, links: readonly string[]): readonly string[] =>
  links.filter((link) => {
    const [path = "", anchor] = link.split("#");
    const target = texts.get(path === "" ? slug : path.replace(/^\/docs\/?/, ""));
    return target === undefined || (anchor !== undefined && !idsIn(target).includes(anchor));
  });

const withoutComments = (text: string): string => text.replaceAll(/^\s*(\/\/|\/\*\*|\*).*$/gm, "");

describe("the manual", () => {
  test("has no page above 150 kB, and every id of a page is unique", () => {
    for (const [slug, text] of texts) {
      expect([slug, Buffer.byteLength(text) < 150 * KB]).toEqual([slug, true]);
      const ids = idsIn(text);
      expect([slug, ids.length]).toEqual([slug, new Set(ids).size]);
    }
  });

  test("every link leads to a page and a section", () => {
    const broken = [...texts].flatMap(([slug, text]) => {
      const links = [...text.matchAll(/href="((?:\/docs|#)[^"]*)"/g)].map(([, link = ""]) => link);
      return brokenIn(slug, links).map((link) => `${slug}: ${link}`);
    });
    expect(broken).toEqual([]);
  });

  test("every link of the dashboard leads to a section", () => {
    expect(
      brokenIn(
        "",
        HELP_SECTIONS.map((section) => `/docs/${section}`),
      ),
    ).toEqual([]);
  });

  test("has every section that a text names", async () => {
    const root = new URL("..", import.meta.url).pathname;
    const paths = [...new Glob("**/*.{ts,tsx}").scanSync(root)].filter(
      (path) => !/\.test\.tsx?$|^testing\//.test(path),
    );
    const texts = await Promise.all(paths.map(async (path) => [path, await Bun.file(root + path).text()] as const));
    // Users have the manual: the README is in the repository and the package.
    expect(texts.filter(([, text]) => /README|\breadme\b/.test(withoutComments(text))).map(([path]) => path)).toEqual(
      [],
    );
    const named = texts.flatMap(([, text]) => [...text.matchAll(/manualHint\("([^"]+)"\)/g)]);
    expect(named).not.toBeEmpty();
    expect(CHECK_SECTIONS.size).toBeGreaterThan(20);
    const links = [...named.map(([, section = ""]) => section), ...CHECK_SECTIONS.values()].map(
      (one) => `/docs/${one}`,
    );
    expect(brokenIn("", links)).toEqual([]);
  });

  test("has the sections of its pages for the terminal, too", () => {
    for (const guide of GUIDES) {
      const page = pages.find(({ slug }) => slug === guide.slug);
      const anchors = page === undefined ? [] : headingsOf(page.body).map(({ anchor }) => anchor);
      expect(anchors).not.toBeEmpty();
      for (const anchor of anchors)
        expect([anchor, sectionOf(guide, anchor)?.text]).toEqual([anchor, expect.any(String)]);
      expect(sectionOf(guide, "no-section")).toBeUndefined();
    }
  });

  test("loads only assets, and has nothing inline", () => {
    for (const text of texts.values())
      expect(text).not.toMatch(/<style|<script>|\sstyle="|\son\w+="|<img(?! src="\/assets\/)|<iframe/);
  });

  test("the search index is that of these pages: `npm run tool -- manual-index` writes it", async () => {
    const path = assetPath("manual-index.json");
    const stored = (await (await findAsset(new Request(`http://localhost${path}`), path))?.text()) ?? "";
    expect(Buffer.byteLength(stored)).toBeLessThan(68 * KB);
    expect(stored === `${JSON.stringify(searchIndexOf(pages))}\n`).toBe(true);
  });
});

describe("the reference", () => {
  const textOfPage = (slug: string): string => texts.get(slug) ?? "";

  test("has every setting, command, reason, event and metric", () => {
    const sections = (slug: string) => {
      const page = pages.find((one) => one.slug === slug);
      return page === undefined ? [] : headingsOf(page.body).map(({ title }) => title);
    };
    expect(sections("reference-settings")).toEqual(settingRows.map(({ name }) => name));
    for (const { description } of settingRows) expect(description).toMatch(/\.$/);
    const names = allCommands(commands).map(({ path }) => path.join(" "));
    expect(sections("reference-commands")).toEqual(names.filter((name) => name !== ""));
    for (const name of SUB_STATUSES) expect(textOfPage("reference-verdicts")).toContain(`<code>${name}</code>`);
    expect(sections("reference-events").toSorted()).toEqual(EVENT_DOCS.map(({ type }) => type).toSorted());
    for (const { name } of new Metrics(createTestClock()).describe())
      expect(textOfPage("reference-metrics")).toContain(`<code>${name}</code>`);
  });
});
