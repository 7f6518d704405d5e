import { readFileSync } from "node:fs";
import { once } from "node:events";
import { Readable, Writable } from "node:stream";
import { z } from "zod";
import { errorText } from "../foundation/base/errors.ts";
import { CLIENT_VARIABLES } from "../service/config.ts";
import { VERSION } from "../service/version.ts";
import { command, option } from "./command.ts";
import { CommandFailed, describeFileError, type Io, UsageError } from "./io.ts";

const { url: URL_VARIABLE, key: KEY_VARIABLE } = CLIENT_VARIABLES;
/** The API holds a request open for up to 90 seconds. */
const REQUEST_MS_MAX = 120_000;
const MESSAGE_BYTES_MAX = 256 * 1024;

const serviceUrl = (given: string): URL => {
  const url = URL.parse(given);
  if (url === null || !/^https?:$/.test(url.protocol) || url.username !== "" || url.password !== "")
    throw new UsageError(`"${given}" is not the URL of a service such as https://postwarden.example.com.`);
  return url;
};

const readKey = (io: Io, keyFile: string | undefined): string => {
  let key = io.environment[KEY_VARIABLE] ?? "";
  try {
    if (keyFile !== undefined) key = readFileSync(keyFile, "utf8");
  } catch (error) {
    throw new CommandFailed(`The key cannot be read: ${describeFileError(keyFile ?? "", error)}`, "key_file");
  }
  if (!/^[\x21-\x7e]+$/.test(key.trim()))
    throw new UsageError(`Set ${KEY_VARIABLE} to an API key, or name a file that holds one with --key-file.`);
  return key.trim();
};

interface Ask {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** Sends requests to the running service. It follows no redirect: the key is for this service alone. */
const createClient = (base: URL, key: string) => {
  const { origin, pathname } = base;
  const root = `${origin}${pathname.endsWith("/") ? pathname.slice(0, -1) : pathname}`;
  return (target: string, { headers, ...ask }: Ask = {}, signal?: AbortSignal): Promise<Response> => {
    const deadline = AbortSignal.timeout(REQUEST_MS_MAX);
    return fetch(`${root}${target}`, {
      ...ask,
      headers: { ...headers, authorization: `Bearer ${key}` },
      redirect: "manual",
      signal: signal === undefined ? deadline : AbortSignal.any([deadline, signal]),
    });
  };
};

const accountSchema = z.object({ scopes: z.array(z.string()) });
const refusalSchema = z.object({ message: z.string() });

/** JSON of the service; says what is wrong when it refuses or cannot be reached. */
const readJson = async (ask: ReturnType<typeof createClient>, target: string): Promise<unknown> => {
  const response = await ask(target).catch((error: unknown) => {
    throw new CommandFailed(`The service cannot be reached: ${errorText(error)}`, "unreachable");
  });
  const body: unknown = await response.json().catch(() => null);
  if (response.ok) return body;
  const { data } = refusalSchema.safeParse(body);
  throw new CommandFailed(`The service answered ${response.status}. ${data?.message ?? ""}`.trimEnd(), "refused");
};

/** The transport searches for the ends of lines as only a `Buffer` can. */
async function* buffersOf(stream: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer, void> {
  for await (const chunk of stream) yield Buffer.from(chunk);
}

const MCP = command({
  description: "Offer the operations of a running service as tools to an agent (Model Context Protocol).",
  example: "mcp --url https://postwarden.example.com --key-file ~/.postwarden-key",
  notes: `Speaks on standard input and output, until the agent closes them. Without options, ${URL_VARIABLE} and ${KEY_VARIABLE} are used. Tools that the key may not use are not listed.`,
  json: null,
  options: {
    url: option("<url>", `URL of the service (default: ${URL_VARIABLE})`),
    keyFile: option("<path>", `file that holds the API key (default: ${KEY_VARIABLE})`),
  },
  async run({ io }, { url, keyFile }) {
    const given = url ?? io.environment[URL_VARIABLE] ?? "";
    if (given === "") throw new UsageError(`Set ${URL_VARIABLE} or --url to the URL of the service.`);
    const ask = createClient(serviceUrl(given), readKey(io, keyFile));
    const account = accountSchema.safeParse(await readJson(ask, "/v1/account"));
    if (!account.success) throw new CommandFailed("The service is older than this command.", "older_service");
    const [{ serveStdio, StdioServerTransport }, { createMcpServer }, { toolsOf }] = await Promise.all([
      import("@modelcontextprotocol/server/stdio"),
      import("../service/mcp/mcp-server.ts"),
      import("../service/mcp/api-tools.ts"),
    ]);
    const tools = toolsOf(await readJson(ask, "/openapi.json"));
    const { scopes } = account.data;
    const input = Readable.from(buffersOf(io.stdin()));
    const output = new Writable({
      write: (chunk: Buffer, _encoding, done) => void io.write(chunk).then(() => done(), done),
    });
    const transport = new StdioServerTransport(input, output, { maxBufferSize: MESSAGE_BYTES_MAX });
    const server = serveStdio(
      () =>
        createMcpServer({
          ...{ version: VERSION, tools, scopes },
          ask: ({ target, ...request }, signal) => ask(target, request, signal),
        }),
      { transport, maxSubscriptions: 0, onerror: (error) => io.err(`postwarden: ${error.message}`) },
    );
    await Promise.race([once(input, "close"), io.untilSignal()]);
    await server.close();
  },
});

/** The command for agents. */
export const MCP_COMMANDS = { mcp: MCP } as const;
