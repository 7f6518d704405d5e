import { describe, expect, test } from "bun:test";
import { renderToString } from "preact-render-to-string";
import { PageContext, usePage } from "../visit.ts";
import { countedTotal, TOTAL_MAX, Pager } from "./pager.tsx";

type PagerProps = Parameters<typeof Pager>[0];

const PagerAt = ({ url, ...props }: PagerProps & { readonly url: string }) => (
  <PageContext.Provider value={{ ...usePage(), url }}>
    <Pager {...props} />
  </PageContext.Provider>
);

const draw = (url: string, props: PagerProps) => {
  const html = renderToString(<PagerAt url={url} {...props} />);
  const links = [...html.matchAll(/<a [^>]*href="([^"]+)"[^>]*>([^<]+)</g)].map(([, href = "", text = ""]) => [
    text,
    href.replaceAll("&amp;", "&"),
  ]);
  return { text: html.replace(/<[^>]+>/g, " "), links: new Map(links.map(([name = "", href = ""]) => [name, href])) };
};

const PAGE = { shown: 50, total: 3_977 };

describe("the pages of a table", () => {
  test("lead forward and back, and say which rows they show", () => {
    let url = "/verify?verdict=risky";
    const urls = [url];
    for (const cursor of ["a", "b", "c"]) {
      url = draw(url, { ...PAGE, next: cursor }).links.get("Next page") ?? "";
      urls.push(url);
    }
    const last = draw(url, { ...PAGE, next: null });
    expect(last.text).toContain("151–200 of 3,977");
    expect(last.links.get("Next page")).toBeUndefined();
    expect(last.links.get("First page")).toBe("/verify?verdict=risky");
    for (const earlier of urls.toReversed().slice(1)) {
      url = draw(url, { ...PAGE, next: "x" }).links.get("Previous page") ?? "";
      expect(url).toBe(earlier);
    }
    const first = draw(url, { ...PAGE, next: "a" });
    expect(first.text).toContain("1–50 of 3,977");
    expect([...first.links.keys()]).toEqual(["Next page"]);
  });

  test("remember a limited number of pages: before them there is only the first", () => {
    let url = "/verify";
    for (let page = 2; page <= 60; page++)
      url = draw(url, { ...PAGE, next: `cursor-${page}` }).links.get("Next page") ?? "";
    expect(url.length).toBeLessThan(1_000);
    expect(draw(url, { ...PAGE, next: null }).text).toContain("2,951–3,000");
    for (let back = 0; back < 30; back++) url = draw(url, { ...PAGE, next: "x" }).links.get("Previous page") ?? "";
    const { links, text } = draw(url, { ...PAGE, next: "x" });
    expect(text).toContain("1,451–1,500");
    expect(links.has("Previous page")).toBeFalse();
    expect(links.get("First page")).toBe("/verify");
  });

  test("offer 50 or 200 rows, from the first page on", () => {
    const { links } = draw("/verify?cursor=b&first=101&trail=51_a&q=x", { ...PAGE, next: "c", rows: 50 });
    expect(links.get("200 rows")).toBe("/verify?q=x&rows=200");
    expect(draw("/verify", { shown: 3, next: null, rows: 50 }).links.size).toBe(0);
  });

  test("ignore places in the URL that are none", () => {
    for (const query of ["cursor=a&first=x&trail=%00", "cursor=a&first=-5", "first=77&trail=9_z"])
      expect(draw(`/verify?${query}`, { ...PAGE, next: null }).text).toContain("1–50");
  });

  test("say when there are more rows than are counted", () => {
    const total = countedTotal(TOTAL_MAX + 1);
    expect(draw("/verify", { shown: 50, next: "a", total }).text).toContain("1–50 of more than 10,000");
    expect(countedTotal(TOTAL_MAX)).toBe(10_000);
  });
});
