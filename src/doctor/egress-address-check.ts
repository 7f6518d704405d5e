import { isIP } from "node:net";
import { type DnsResolver, isDefinite } from "../foundation/net/dns.ts";
import { reverseQueryName } from "../foundation/net/dns-name.ts";
import { createAddressPolicy } from "../foundation/net/public-address.ts";
import type { SmtpTranscriptLine } from "../foundation/net/line-socket.ts";
import { type DoctorCheck, doctorFindings } from "./doctor-check.ts";

const nameCheck = doctorFindings("egress_name", "Reverse DNS of the own address", "sender-reputation#helo-name");

const { isAllowed: isPublic } = createAddressPolicy([]);
/** More names of one address are not looked up. */
const NAMES_MAX = 5;

const addressesIn = (text: string): readonly string[] =>
  text
    .split(/[^0-9a-fv.:]+/i)
    .map((word) => word.replace(/^.*v6:/i, "").replace(/[.:]$/, ""))
    .filter((word) => isIP(word) !== 0);

/**
 * The public address that a mail host sees us from, if it says so: many do in the first line of the reply to EHLO
 * ("at your service, [203.0.113.5]"), or in a refusal. Null when it does not. `hostAddress` is its own.
 */
export const seenAddress = (transcript: readonly SmtpTranscriptLine[], hostAddress: string): string | null => {
  const ehlo = transcript.findIndex(({ from, text }) => from === "us" && text.startsWith("EHLO"));
  const said = transcript.filter(({ from, text }, at) => from === "server" && (at === ehlo + 1 || /^[45]/.test(text)));
  const found = said.flatMap(({ text }) => addressesIn(text));
  return found.find((address) => address !== hostAddress && isPublic(address)) ?? null;
};

export interface ReverseNameOptions {
  /** A public address of this service. */
  readonly address: string;
  readonly heloName: string;
  readonly resolver: DnsResolver;
}

/** Whether an egress address has a reverse name that resolves back to it, and the HELO name resolves to it. */
export const checkReverseName = async ({ address, heloName, resolver }: ReverseNameOptions): Promise<DoctorCheck> => {
  const type = isIP(address) === 6 ? "AAAA" : "A";
  const reverse = await resolver.resolve(reverseQueryName(address), "PTR");
  const name = heloName.includes(".") && !heloName.startsWith("[") ? heloName.toLowerCase() : "mail.example.com";
  const ask = `Ask the provider of ${address} to set its PTR record to ${name}, and publish: ${name} ${type} ${address}`;
  if (!isDefinite(reverse.outcome))
    return nameCheck.warn(`The PTR query for ${address} failed (${reverse.outcome}). Check the DNS servers.`);
  const names = reverse.records.slice(0, NAMES_MAX);
  const [first] = names;
  if (first === undefined) return nameCheck.warn(`${address} has no PTR record, so many servers refuse it. ${ask}`);
  const forward = await Promise.all(names.map((one) => resolver.resolve(one, type)));
  const confirmed = names.find((_, at) => forward[at]?.records.includes(address));
  if (confirmed === undefined)
    return nameCheck.warn(
      `The PTR record of ${address} names ${names.join(", ")}, which does not resolve back to it. Publish: ${first} ${type} ${address}`,
    );
  const helo = await resolver.resolve(heloName, type);
  if (helo.records.includes(address))
    return nameCheck.ok(`${address} is ${confirmed}, which resolves back to it; so does the HELO name.`);
  return nameCheck.warn(
    `${address} is ${confirmed}, but the HELO name ${heloName} does not resolve to it, so it seems forged. Publish: ${name} ${type} ${address}`,
  );
};
