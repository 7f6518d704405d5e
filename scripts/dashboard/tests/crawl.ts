/** Everything that a user can reach by following links: pages, downloads and the forms on them. */
import { type HttpClient, readPage, type SeenForm, type SeenPage } from "../http-client.ts";
import { Frontier, isDownload, isPage, placeOf } from "../places.ts";

export interface CrawledPage extends SeenPage {
  readonly target: string;
  readonly forms: readonly SeenForm[];
}

export interface Crawl {
  /** Pages with status 200. */
  readonly pages: readonly CrawledPage[];
  /** Links to files: CSV, raw mail. */
  readonly downloads: readonly string[];
  /** One POST form of each kind and target. */
  readonly forms: readonly SeenForm[];
  /** Links that lead to an error. */
  readonly broken: readonly string[];
}

const PAGES_MAX = 600;

/** Visits up to `perPlace` pages of each kind. */
export const crawl = async (
  client: HttpClient,
  perPlace: number,
  start: readonly string[] = ["/", "/test"],
): Promise<Crawl> => {
  const frontier = new Frontier(perPlace, start);
  const downloads = new Map<string, string>();
  const forms = new Map<string, SeenForm>();
  const pages: CrawledPage[] = [];
  const broken: string[] = [];
  for (let target = frontier.next(); target !== undefined && pages.length < PAGES_MAX; target = frontier.next()) {
    const page = await client.get(target);
    if (page.status !== 200) {
      if (page.status >= 400) broken.push(`${page.status} ${target}`);
      continue;
    }
    const seen = await readPage(page.html, target);
    pages.push({ ...page, target, forms: seen.forms });
    for (const link of seen.links) if (isDownload(link)) downloads.set(placeOf(link), link);
    frontier.add(seen.links.filter((link) => isPage(link) && !link.includes("#")));
    for (const form of seen.forms)
      if (form.method === "POST") forms.set(`${form.action} ${form.fields.map(([name]) => name)}`, form);
  }
  return { pages, downloads: [...downloads.values()], forms: [...forms.values()], broken };
};

/** Sends a form as it stands, with another token where `csrf` is given. */
export const sendForm = (client: HttpClient, form: SeenForm, csrf?: string): Promise<SeenPage> => {
  const token = (name: string, value: string): string => (name === "_csrf" && csrf !== undefined ? csrf : value);
  const action = csrf === undefined ? form.action : form.action.replace(/([?&]_csrf=)[^&]*/, `$1${csrf}`);
  const fields = form.fields.map(([name, value]) => [name, token(name, value)] as const);
  if (!form.isUpload) return client.post(action, new URLSearchParams(fields.map(([name, value]) => [name, value])));
  const body = new FormData();
  for (const [name, value] of fields) body.append(name, value);
  return client.post(action, body);
};

/** The CSRF token of a session, from any form of a page. */
export const tokenOf = async (client: HttpClient, page = "/"): Promise<string> => {
  const { forms } = await readPage((await client.get(page)).html, page);
  const token = forms.flatMap(({ fields }) => fields).find(([name]) => name === "_csrf")?.[1];
  if (token === undefined) throw new Error(`${page} has no form with a token`);
  return token;
};
