import { createMcpHandler } from "@modelcontextprotocol/server";
import { releaseBody } from "../../foundation/http/request-memory.ts";
import type { ApiTool } from "./api-tools.ts";
import { createMcpServer } from "./mcp-server.ts";

interface EndpointDeps {
  readonly version: string;
  readonly tools: readonly ApiTool[];
  /** Serves a request to the API. */
  readonly serve: (request: Request) => Response | Promise<Response>;
}

/** What a request to the endpoint is: its message, and the scopes of its key. */
interface EndpointRequest {
  readonly request: Request;
  readonly message: unknown;
  readonly scopes: readonly string[];
}

/** A client that accepts anything accepts JSON and streams, which the protocol demands by name. */
const acceptingAll = (request: Request): Request => {
  const accept = request.headers.get("accept");
  if (accept !== null && accept !== "*/*") return request;
  const headers = new Headers(request.headers);
  headers.set("accept", "application/json, text/event-stream");
  return new Request(request.url, { method: request.method, headers, signal: request.signal });
};

/** The server of Streamable HTTP. It keeps nothing between two requests: no sessions, no subscriptions. */
export const createEndpoint = ({ version, tools, serve }: EndpointDeps) => {
  const authorizationOf = ({ headers }: Request) => ({ authorization: headers.get("authorization") ?? "" });
  return ({ request, message, scopes }: EndpointRequest): Promise<Response> => {
    const askedBy = authorizationOf(request);
    const { fetch } = createMcpHandler(
      () =>
        createMcpServer({
          ...{ version, tools, scopes },
          async ask({ method, target, headers, body }, signal) {
            const asked = new Request(`http://localhost${target}`, {
              ...{ method, headers: { ...headers, ...askedBy }, signal: AbortSignal.any([signal, request.signal]) },
              ...(body === undefined ? {} : { body }),
            });
            try {
              return await serve(asked);
            } finally {
              releaseBody(asked);
            }
          },
        }),
      { maxSubscriptions: 0, keepAliveMs: 0 },
    );
    return fetch(acceptingAll(request), { parsedBody: message });
  };
};
