import { AppError } from "../foundation/base/errors.ts";
import { backgroundTurn } from "../foundation/base/fair-queue.ts";
import { equalInConstantTime, sha256 } from "../foundation/base/secrets.ts";
import { LoadOnce } from "../foundation/base/load-once.ts";
import type { Manual } from "./manual.ts";
import { ANY_URL } from "./docs/docs-response.ts";
import { pathOf, type UrlOfRequest } from "../foundation/http/request-target.ts";
import { sendBytes, sendText } from "../foundation/http/response.ts";
import type { Guard } from "../foundation/http/guard.ts";
import { handleOpen, serveRoutes } from "../foundation/http/route.ts";
import { METRICS_TYPE } from "./metrics/metrics.ts";
import { LIVENESS } from "./version.ts";
import type { Readiness } from "./readiness.ts";
import { GET_DOCS, GET_DOCS_PAGE, GET_HEALTH, GET_METRICS, GET_OPENAPI, GET_READINESS } from "./service-operations.ts";

export interface ServiceRouteOptions {
  readonly guard: Guard;
  /** Builds the OpenAPI document; called at its first request. */
  readonly describe: () => Promise<object>;
  readonly urlOf: UrlOfRequest;
  /** Null where `/docs` is turned off. */
  readonly manual: LoadOnce<Manual> | null;
  readonly readiness: Readiness;
  /** `token`: null where metrics are not exposed. */
  readonly metrics: { readonly token: string | null; readonly render: () => Promise<string> };
}

/** The routes that need no API key: liveness, readiness, metrics and the OpenAPI document. */
export const createServiceRoutes = ({ guard, describe, urlOf, manual, readiness, metrics }: ServiceRouteOptions) => {
  const documentAt = createDocument(describe);
  const respond = async (request: Request, slug: string): Promise<Response> => {
    if (manual === null) throw new AppError("not_found", { message: "The manual is turned off." });
    return (await manual.get()).respond(request, slug);
  };

  return serveRoutes(guard, [
    handleOpen(GET_HEALTH, () => LIVENESS),

    handleOpen(GET_READINESS, () => {
      const { reasons, findings } = readiness.check();
      if (reasons.length > 0)
        throw new AppError("unavailable", {
          message: [...reasons, ...findings].join(" "),
          headers: { "retry-after": "5" },
        });
      return { status: findings.length === 0 ? "ok" : "degraded", findings };
    }),

    handleOpen(GET_METRICS, async (request) => {
      requireToken(request, metrics.token);
      return sendText(request, await metrics.render(), { "content-type": METRICS_TYPE });
    }),

    handleOpen(GET_OPENAPI, async (request) =>
      sendBytes(request, await documentAt(urlOf(request)), { "content-type": "application/json" }),
    ),

    handleOpen(GET_DOCS, (request) => respond(request, "")),

    handleOpen(GET_DOCS_PAGE, (request) => respond(request, pathOf(request).slice(GET_DOCS.path.length + 1))),
  ]);
};

/**
 * The document as it names a URL. The bytes for the last URL are kept and shared by all responses: 100 requests that wait for
 * the document would otherwise each write a megabyte in the same turn, and hold the event loop for a second.
 */
export const createDocument = (describe: ServiceRouteOptions["describe"]) => {
  const document = new LoadOnce(async () => ({ text: JSON.stringify(await describe()) }));
  let last: { readonly url: string; readonly bytes: Uint8Array } | null = null;
  return async (url: string): Promise<Uint8Array> => {
    const { text } = await document.get();
    if (last?.url !== url) await backgroundTurn(null);
    if (last?.url !== url) last = { url, bytes: Buffer.from(text.replaceAll(ANY_URL, url)) };
    return last.bytes;
  };
};

/** 404 where no token is set, 401 for a request without it. */
const requireToken = (request: Request, token: string | null): void => {
  if (token === null) throw new AppError("not_found", { message: "Metrics are not enabled." });
  const given = /^Bearer +(\S+) *$/i.exec(request.headers.get("authorization") ?? "")?.[1];
  // The hashes have one length, so that the time does not tell that of the token.
  if (given !== undefined && equalInConstantTime(sha256(given), sha256(token))) return;
  throw new AppError("unauthorized", {
    message: "Missing or invalid metrics token. Send it as: Authorization: Bearer <METRICS_TOKEN>",
    headers: { "www-authenticate": 'Bearer realm="postwarden metrics"' },
  });
};
