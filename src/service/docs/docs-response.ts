import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { UrlOfRequest } from "../../foundation/http/request-target.ts";
import { sendText, takesGzip } from "../../foundation/http/response.ts";

/** Stands in texts for the URL under which the reader of a page reaches the service. */
export const ANY_URL = "https://postwarden.invalid";

/** A page and the headers that belong to it. */
export interface Page {
  readonly text: string;
  readonly headers: Readonly<Record<string, string>>;
}

interface PreparedPage extends Page {
  readonly zipped: Uint8Array<ArrayBuffer>;
}

/** Serves a page that is rendered and compressed at its first request, and kept. A failure is not kept. */
export class CachedPage {
  #page: Promise<PreparedPage> | null = null;

  constructor(
    private readonly render: () => Promise<Page>,
    private readonly urlOf: UrlOfRequest,
  ) {}

  async respond(request: Request): Promise<Response> {
    const { text, headers, zipped } = await this.#prepared();
    if (text.includes(ANY_URL)) return sendText(request, text.replaceAll(ANY_URL, this.urlOf(request)), headers);
    if (!takesGzip(request)) return sendText(request, text, headers);
    return new Response(zipped, { headers: { ...headers, vary: "accept-encoding", "content-encoding": "gzip" } });
  }

  #prepared(): Promise<PreparedPage> {
    this.#page ??= this.#prepare().catch((error) => {
      this.#page = null;
      throw error;
    });
    return this.#page;
  }

  async #prepare(): Promise<PreparedPage> {
    const page = await this.render();
    return { ...page, zipped: new Uint8Array(await promisify(gzip)(page.text)) };
  }
}
