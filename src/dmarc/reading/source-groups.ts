import ipaddr from "ipaddr.js";
import { organisationalDomain } from "../../mail/organisational-domain.ts";
import { OTHER_SOURCES } from "../ingest/source-key.ts";
import type { SourceAddress } from "./reading-store.ts";
import type { SourceKind } from "./source-view.ts";

/** An address with its reverse name, and whether that leads back to it. */
type NamedAddress = Pick<SourceAddress, "ip" | "name" | "isConfirmed">;

/** The network that an address is counted to: a /24 of IPv4, a /48 of IPv6, canonical. */
export const networkOf = (ip: string): string => {
  if (!ip.includes(":")) return `${ip.slice(0, ip.lastIndexOf("."))}.0/24`;
  const { parts } = ipaddr.IPv6.parse(ip);
  return `${new ipaddr.IPv6([...parts.slice(0, 3), 0, 0, 0, 0, 0]).toString()}/48`;
};

/** The key under which people see an address: `ptr:` where a reverse name leads back to it, else `net:`. */
export const addressKeyOf = ({ ip, name, isConfirmed }: NamedAddress): string =>
  name !== null && isConfirmed ? `ptr:${organisationalDomain(name) ?? name}` : `net:${networkOf(ip)}`;

/** The key under which people see a stored source: `ip:` ones are grouped by their address, others are as they are. */
export const shownKeyOf = (key: string, address: NamedAddress): string =>
  key.startsWith("ip:") ? addressKeyOf(address) : key;

const KINDS: ReadonlyMap<string, SourceKind> = new Map([
  ["dkim", "dkim"],
  ["spf", "spf"],
  ["ptr", "reverse"],
  ["net", "network"],
]);

/** A shown key taken apart; null for what is none. */
export const readShownKey = (key: string): { readonly kind: SourceKind; readonly name: string } | null => {
  if (key === OTHER_SOURCES) return { kind: "network", name: "other sources" };
  const colon = key.indexOf(":");
  const kind = KINDS.get(key.slice(0, Math.max(0, colon)));
  const name = key.slice(colon + 1);
  return kind === undefined || name === "" ? null : { kind, name };
};

/** A server's name says so, even with its address in it. */
const SERVER =
  /(?:^|[.-])(?:mail|mx|smtp|mta|out|relay|server|srv|vps|vserver|dedi|dedicated|hosting|hosted|cloud|colo|web|www|static|business|biz)\d*(?=[.-])/;
const DYNAMIC =
  /(?:^|[.\d_-])(?:a?dsl|vdsl|x?dsl|dyn|dynamic|dynip|dhcp|pool|ppp|pppoe|dial|dialup|dialin|broadband|cable|catv|cpe|cust|customer|customers|client|clients|user|users|subs|subscriber|res|residential|mobile|lte|umts|gprs|abo|wireless|fiber|fibre|ftth|fttx|home)(?=[.\d_-])/;

/** Whether a name is one that a provider gives to the addresses of its customers at home: a dynamic word, or the address itself. */
export const isGenericName = (name: string, ip: string): boolean => {
  if (SERVER.test(name)) return false;
  return DYNAMIC.test(name) || holdsAddress(name, ip);
};

const holdsAddress = (name: string, ip: string): boolean => {
  if (ip.includes(":")) return false;
  const octets = ip.split(".");
  const numbers = new Set((name.match(/\d+/g) ?? []).map(Number));
  const hex = octets.map((octet) => Number(octet).toString(16).padStart(2, "0")).join("");
  const padded = octets.map((octet) => octet.padStart(3, "0")).join("");
  const isWritten = name.includes(hex) || name.includes(padded);
  return isWritten || octets.every((octet) => numbers.has(Number(octet)));
};
