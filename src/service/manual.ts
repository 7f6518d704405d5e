import { systemClock } from "../foundation/base/clock.ts";
import { SUB_STATUS_SCORES, signalsSchema } from "../verify/result.ts";
import { apiPages } from "./docs/api-pages.ts";
import { CachedPage } from "./docs/docs-response.ts";
import type { Guide } from "./docs/guides.ts";
import {
  guidePages,
  type ManualPage,
  markdownPage,
  missingPage,
  overviewPage,
  renderManualPage,
} from "./docs/manual-page.ts";
import { type CommandDoc, referencePages } from "./docs/reference.ts";
import type { UrlOfRequest } from "../foundation/http/request-target.ts";
import { Metrics } from "./metrics/metrics.ts";
import { settingRows } from "./settings.ts";

/** The pages of the reference in Markdown: everything but the API and its events. */
export const referenceGuides = (commands: CommandDoc): readonly Guide[] =>
  referencePages({
    commands,
    settings: settingRows,
    reasons: SUB_STATUS_SCORES,
    signals: Object.fromEntries(
      Object.entries(signalsSchema.shape).map(([name, schema]) => [name, { description: schema.meta()?.description }]),
    ),
    metrics: new Metrics(systemClock).describe(),
  });

export interface ManualDeps {
  /** Builds the OpenAPI document. */
  readonly describe: () => Promise<object>;
  /** The command line, which is above the service. */
  readonly commands: () => Promise<CommandDoc>;
}

/** Every page of the manual: guides, then the reference, then the overview of both. */
export const manualPages = async ({ describe, commands }: ManualDeps): Promise<readonly ManualPage[]> => {
  const reference = referenceGuides(await commands()).map((guide) => markdownPage(guide, "Reference"));
  const api = await apiPages(await describe());
  const pages = [...guidePages(), ...api.slice(0, 1), ...reference, ...api.slice(1)];
  return [...pages, overviewPage(pages)];
};

/** The name of the page that stands where there is none. */
const MISSING = missingPage().slug;

/** The manual. Its pages are made at the first request for one, and each is kept from the first request for it. */
export class Manual {
  #pages: Promise<ReadonlyMap<string, CachedPage>> | null = null;

  constructor(private readonly deps: ManualDeps & { readonly urlOf: UrlOfRequest }) {}

  /** `slug` is empty for the overview. */
  async respond(request: Request, slug: string): Promise<Response> {
    this.#pages ??= this.#load().catch((error) => {
      this.#pages = null;
      throw error;
    });
    const pages = await this.#pages;
    const page = pages.get(slug);
    if (page !== undefined && slug !== MISSING) return page.respond(request);
    const missing = await pages.get(MISSING)?.respond(request);
    return new Response(missing?.body ?? null, { status: 404, headers: missing?.headers ?? {} });
  }

  async #load(): Promise<ReadonlyMap<string, CachedPage>> {
    const pages = await manualPages(this.deps);
    return new Map(
      [...pages, missingPage()].map((page) => [
        page.slug,
        new CachedPage(async () => renderManualPage(page, pages), this.deps.urlOf),
      ]),
    );
  }
}
