import { ask, keyOf } from "./api.ts";
import { type Attack, type Finding, flood, pause, tallyOf } from "./attack.ts";
import { type Held, requestHead, statusHeard } from "./connections.ts";

const PATH = "/mcp";
const FLOOD_MS = 10_000;
const AT_ONCE = 40;
const SLOW = 500;
const KIB = 1024;
const MESSAGE_BYTES = 256 * KIB;

const message = (method: string, params: object): string => JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });

const LISTED = message("tools/list", {});
/** Fits, and is refused by the operation of the tool. */
const LARGE = message("tools/call", {
  name: "createVerification",
  arguments: { body: { email: "x".repeat(MESSAGE_BYTES - KIB) } },
});
const OVERSIZED = message("tools/call", { name: "getAccount", arguments: { text: "x".repeat(3 * KIB * KIB) } });

const agents: Attack = {
  name: "agents",
  about: `${AT_ONCE} agents list tools and send bodies of 256 KiB and 3 MiB to /mcp, then ${SLOW} bodies never end`,
  isQuick: true,
  seconds: 30,
  prepare: async (context) => async (): Promise<readonly Finding[]> => {
    const statuses: number[] = [];
    await flood(context, { atOnce: AT_ONCE, forMs: FLOOD_MS }, async (n) => {
      const body = [LISTED, LARGE, LISTED, OVERSIZED][n % 4] ?? LISTED;
      statuses.push((await ask(context, PATH, { key: keyOf(context.keys.attacker.test, n), body })).status);
    });
    const slow: Held[] = [];
    await flood(context, { atOnce: 50, times: SLOW }, async (n) => {
      const connection = await context.connections.open({ host: "127.0.0.1", port: context.service.port });
      const key = keyOf(context.keys.attacker.test, n);
      connection.write(
        `${requestHead("POST", PATH, { key, type: "application/json", length: MESSAGE_BYTES })}{"jsonrpc"`,
      );
      slow.push(connection);
    });
    await pause(context, 1_000);
    return [
      { what: "messages of agents", value: statuses.length, unit: "", note: tallyOf(statuses) },
      { what: "bodies that never end", value: slow.length, unit: "", note: tallyOf(slow.map(statusHeard)) },
    ];
  },
};

/** Attacks on the interface of agents. */
export const agentAttacks: readonly Attack[] = [agents];
