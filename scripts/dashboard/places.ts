/** The pages of the dashboard: which there are according to the page map, and which addresses the links lead to. */
import type { Page } from "playwright-core";

/** Every place of the page map; `{id}` stands for an id or a key. Each must be reached by links from the home page. */
export const PAGE_MAP: readonly string[] = [
  ...["/", "/welcome", "/verify", "/verify/bounces", "/verify/{id}", "/lists", "/lists/{id}"],
  ...["hosts", "compare", "about"].map((tab) => `/lists/{id}?tab=${tab}`),
  "/lists/{id}?confirm=download",
  ...[
    "/dmarc",
    "/dmarc/{id}",
    "/dmarc/{id}/sources/{key}",
    "/dmarc/{id}/record",
    "/dmarc/{id}/advice",
    "/dmarc/{id}/reports",
  ],
  ...["/dmarc/intake", "/blocklists", "/blocklists/{id}", "/blocklists/lists", "/usage", "/webhooks", "/search"],
  ...["/settings", "/settings/keys", "/settings/users", "/settings/profile"],
];

const IS_DOWNLOAD = /\.(csv|json|eml|xml)(\?|$)|\/(csv|json|raw|download)(\/|\?|$)/;
const IS_ELSEWHERE = /^\/(v1|docs|openapi|assets|metrics|healthz|readyz)\b/;

/** Whether a link leads to a file. */
export const isDownload = (target: string): boolean => IS_DOWNLOAD.test(target);

/** Whether a link leads to a page of the dashboard. */
export const isPage = (target: string): boolean => !isDownload(target) && !IS_ELSEWHERE.test(target);

const ID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;

/** Another page of the same table. */
const OF_PAGES = ["cursor", "first", "trail", "rows"];

/** Parameters that choose another part of a page. */
const OF_PARTS = ["tab", "confirm"];

/** The kind of page that a path leads to: ids and keys replaced, the names of its parameters kept. */
export const placeOf = (target: string): string => {
  const { pathname, searchParams } = new URL(target, "http://localhost");
  const path = pathname
    .replace(ID, "{id}")
    .replace(/\/sources\/[^/]+/, "/sources/{key}")
    .replace(/\/(rows|listings|members)\/[^/]+/, "/$1/{key}");
  const names = [...new Set(searchParams.keys())].filter((name) => !OF_PAGES.includes(name)).toSorted();
  const kept = names.map((name) => (OF_PARTS.includes(name) ? `${name}=${searchParams.get(name)}` : name));
  return kept.length === 0 ? path : `${path}?${kept.join("&")}`;
};

/** The links of a page to other pages of the dashboard. */
export const linksOf = async (page: Page): Promise<string[]> => {
  const hrefs = await page.evaluate<string[]>(
    "[...document.querySelectorAll('a[href]')].filter((a) => !a.hasAttribute('download')).map((a) => a.href)",
  );
  const { origin } = new URL(page.url());
  return hrefs
    .map((href) => new URL(href))
    .filter((url) => url.origin === origin)
    .map(({ pathname, search }) => pathname + search)
    .filter(isPage);
};

/** Collects addresses to visit: a few of each kind, because one list shows a thousand checks. */
export class Frontier {
  readonly #seen = new Set<string>();
  readonly #counts = new Map<string, number>();
  readonly #left: string[] = [];

  /** `perPlace`: how many addresses of one kind are visited; of those with parameters, one. */
  constructor(
    private readonly perPlace: number,
    start: readonly string[],
  ) {
    this.add(start);
  }

  add(targets: readonly string[]): void {
    for (const target of targets) {
      const place = placeOf(target);
      const count = this.#counts.get(place) ?? 0;
      if (this.#seen.has(target) || count >= (place.includes("?") ? 1 : this.perPlace)) continue;
      this.#seen.add(target);
      this.#counts.set(place, count + 1);
      this.#left.push(target);
    }
  }

  next(): string | undefined {
    return this.#left.shift();
  }

  get places(): ReadonlySet<string> {
    return new Set(this.#counts.keys());
  }
}
