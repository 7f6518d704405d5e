import { z } from "zod";
import { AppError } from "../../foundation/base/errors.ts";
import { backgroundTurn } from "../../foundation/base/fair-queue.ts";
import { LoadOnce } from "../../foundation/base/load-once.ts";
import type { Guard } from "../../foundation/http/guard.ts";
import { declareRoute, handle, type ServedRoute, serveRoutes } from "../../foundation/http/route.ts";

/** One message. Batches, which protocol revision 2025-06-18 removed, could ask for thousands of calls at once. */
const messageSchema = z
  .looseObject({
    jsonrpc: z.literal("2.0").meta({ description: "Always `2.0`." }),
    method: z.string().optional().meta({ description: "Such as `tools/list` or `tools/call`." }),
    id: z.union([z.string(), z.int()]).optional().meta({ description: "Absent in a notification." }),
    params: z.looseObject({}).optional().meta({ description: "What the method needs." }),
  })
  .meta({ title: "McpMessage" });

/** Agents write far less; each message is parsed several times. */
const MESSAGE_BYTES_MAX = 256 * 1024;

export const CALL_MCP = declareRoute({
  method: "POST",
  path: "/mcp",
  operationId: "callMcp",
  tag: "Service",
  unrecorded: "the requests of tools are recorded as those of the API",
  summary: "Send a message of the Model Context Protocol",
  description:
    "The operations of the API as tools for agents (Streamable HTTP, without sessions). Tools that the key may not use do not exist. Their rate limits, charges and errors are those of the operations. Requests from web pages are refused with 403 unless the page is of this service or of this machine.",
  scope: null,
  body: {
    schema: messageSchema,
    example: { jsonrpc: "2.0", id: 1, method: "tools/list", params: {} },
    bytesMax: MESSAGE_BYTES_MAX,
  },
  responses: {
    200: {
      description: "The answer; older protocol revisions get it as an event stream.",
      schema: z.looseObject({}),
      example: { jsonrpc: "2.0", id: 1, result: { tools: [] } },
    },
    202: { description: "A notification was received." },
  },
  errors: ["origin_not_allowed"],
});

const THIS_MACHINE: ReadonlySet<string> = new Set(["localhost", "127.0.0.1", "[::1]"]);

/**
 * Whether a page may send the request. The Host of the request proves nothing: after DNS rebinding it is that of the foreign page.
 * Programs other than browsers send no Origin.
 */
const isFromOwnPage = (origin: string | null, baseUrl: string | null): boolean => {
  if (origin === null) return true;
  const page = URL.parse(origin);
  return (
    page !== null && (THIS_MACHINE.has(page.hostname) || (baseUrl !== null && page.origin === new URL(baseUrl).origin))
  );
};

interface McpRouteDeps {
  readonly guard: Guard;
  readonly version: string;
  /** The public URL of the service, where it is known. */
  readonly baseUrl: string | null;
  /** Builds the OpenAPI document. */
  readonly describe: () => Promise<object>;
  /** Serves a request to the API. */
  readonly serve: (request: Request) => Response | Promise<Response>;
}

/** Serves the operations of the API as tools. The package is loaded by the first request: most services have no agents. */
export const createMcpRoutes = ({ guard, version, baseUrl, describe, serve }: McpRouteDeps): readonly ServedRoute[] => {
  const endpoint = new LoadOnce(async () => {
    const [{ createEndpoint }, { toolsOf }, document] = await Promise.all([
      import("./http-endpoint.ts"),
      import("./api-tools.ts"),
      describe(),
    ]);
    return createEndpoint({ version, serve, tools: toolsOf(document) });
  });
  return serveRoutes(guard, [
    handle(CALL_MCP, async ({ request, body: message, caller: { scopes, accountId } }) => {
      if (!isFromOwnPage(request.headers.get("origin"), baseUrl))
        throw new AppError("origin_not_allowed", { message: "Web pages of other origins may not use this interface." });
      const respond = await endpoint.get();
      // A list of all tools takes some milliseconds.
      await backgroundTurn(accountId);
      return respond({ request, message, scopes });
    }),
  ]);
};
