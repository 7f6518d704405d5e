import type { TestedList } from "../blocklist/list-status.ts";
import { ListClient, judgePositive, noPacing } from "../blocklist/lists/list-client.ts";
import type { Blocklist } from "../blocklist/lists/blocklist.ts";
import { literalName } from "../blocklist/lists/query-name.ts";
import type { Clock } from "../foundation/base/clock.ts";
import { type DnsResolver, type DnsServer, formatServer } from "../foundation/net/dns.ts";
import { createDnsResolver } from "../foundation/net/dns-resolver.ts";
import { DOCTOR_DNS_TIMEOUTS } from "./dns-check.ts";
import { type DoctorCheck, doctorFindings } from "./doctor-check.ts";

const blocklistsCheck = doctorFindings("blocklists", "Blocklists through this resolver", "sender-reputation#resolver");

const NAMED_MAX = 3;
const UNSENT = { state: "unreachable", reason: "The query could not be sent.", remedy: null } as const;

/** What a list responds for its first test point through this resolver; null for a list without test points. */
const queryTestEntry = async (list: Blocklist, resolver: DnsResolver): Promise<TestedList | null> => {
  const client = new ListClient(resolver, noPacing);
  for (const kind of list.kinds) {
    const point = list.testPoints[kind]?.positive[0];
    if (point === undefined) continue;
    const answer = await client.query(list, literalName({ kind, value: point.value }) ?? point.value);
    const { state, reason, remedy } = judgePositive(point, answer) ?? UNSENT;
    return { name: list.name, state, reason, remedy };
  }
  return null;
};

const reasonOf = ({ state, reason, remedy }: TestedList): string => [reason ?? state, remedy ?? ""].join(" ").trim();

/** The lists by what is wrong with them, each reason once. */
const describeLists = (troubled: readonly TestedList[]): string => {
  const byReason = Map.groupBy(troubled, reasonOf);
  return [...byReason].map(([reason, lists]) => `${lists.map(({ name }) => name).join(", ")}: ${reason}`).join(" ");
};

/** Whether the enabled blocklists are usable through this resolver: one query to each, for its test point. */
export const checkBlocklists = async (lists: readonly Blocklist[], resolver: DnsResolver): Promise<DoctorCheck> => {
  const results = await Promise.all(lists.map((list) => queryTestEntry(list, resolver)));
  return describeTested(results.filter((one) => one !== null));
};

const describeTested = (known: readonly TestedList[]): DoctorCheck => {
  const troubled = known.filter(({ state }) => state !== "healthy" && state !== "unknown");
  const [first] = troubled;
  if (first === undefined) return blocklistsCheck.ok(`${known.length} lists return their test points.`);
  if (troubled.length === known.length)
    return blocklistsCheck.warn(
      `None of ${known.length} lists is usable through this resolver. ${describeLists([first])} Set POSTWARDEN_DNS_SERVERS to a recursive resolver of your own; most lists refuse public resolvers.`,
    );
  const more =
    troubled.length > NAMED_MAX
      ? ` ${troubled.length - NAMED_MAX} more: run \`postwarden blocklist lists --test\`.`
      : "";
  const named = describeLists(troubled.slice(0, NAMED_MAX));
  return blocklistsCheck.warn(`${troubled.length} of ${known.length} lists are not usable. ${named}${more}`);
};

interface ListChecksOptions {
  readonly servers: readonly DnsServer[];
  readonly clock: Clock;
  /** What the tests of the service found, which every other page shows; null without any. */
  readonly tested: readonly TestedList[] | null;
}

/** The same through each DNS server, because lists refuse some of them and not others; the service knows the result already. */
export const checkBlocklistsThrough = async (
  lists: readonly Blocklist[],
  { servers, clock, tested }: ListChecksOptions,
): Promise<readonly DoctorCheck[]> => {
  if (tested !== null) return [describeTested(tested)];
  return Promise.all(
    servers.map(async (server) => {
      const resolver = createDnsResolver({ servers: [server], clock, timeouts: DOCTOR_DNS_TIMEOUTS });
      const found = await checkBlocklists(lists, resolver);
      resolver.close();
      return servers.length === 1 ? found : { ...found, message: `Through ${formatServer(server)}: ${found.message}` };
    }),
  );
};
