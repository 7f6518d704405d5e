import ipaddr from "ipaddr.js";
import { cached } from "../../../foundation/base/cached.ts";
import { organisationalDomain } from "../../../foundation/mail/organisational-domain.ts";

/** Canonical addresses whose first three groups are written out: nearly all on the internet. */
const PLAIN_IPV6 = /^[1-9a-f][0-9a-f]{0,3}(?::[1-9a-f][0-9a-f]{0,3}){2}(?=:)/;

const CACHED_MAX = 20_000;

const computeNetwork = (ip: string): string => {
  if (!ip.includes(":")) return `${ip.slice(0, ip.lastIndexOf("."))}.0/24`;
  const plain = PLAIN_IPV6.exec(ip);
  if (plain !== null) return `${plain[0]}::/48`;
  const { parts } = ipaddr.IPv6.parse(ip);
  return `${new ipaddr.IPv6([...parts.slice(0, 3), 0, 0, 0, 0, 0]).toString()}/48`;
};

/** The network of an address, in canonical form: a /24 for IPv4, a /48 for IPv6. */
export const ipNetworkOf: (ip: string) => string = cached(CACHED_MAX, computeNetwork);

/** A label that only mail servers have, even with their address in the name. */
const MAIL = /(?:^|[.-])(?:mail|mx|smtp|mta|out|outbound|relay)\d*(?=[.-])/;
/** A label that servers have; it proves nothing when the name contains the address. */
const SERVER =
  /(?:^|[.-])(?:server|srv|vps|vserver|dedi|dedicated|hosting|hosted|cloud|colo|web|www|static|business|biz)\d*(?=[.-])/;
const DYNAMIC =
  /(?:^|[.\d_-])(?:a?dsl|vdsl|x?dsl|dyn|dynamic|dynip|dhcp|pool|ppp|pppoe|dial|dialup|dialin|broadband|cable|catv|cpe|cust|customer|customers|client|clients|user|users|subs|subscriber|res|residential|mobile|lte|umts|gprs|abo|wireless|fiber|fibre|ftth|fttx|home|unassigned|no-reverse|no-rdns|unknown|dip\d*)(?=[.\d_-])/;
/** One name for all addresses of a network. */
const PLACEHOLDER =
  /^(?:localhost(?:\.|$)|(?:static|dynamic|customer|client|host|unassigned|unknown)\.[a-z0-9-]+\.[a-z]+$)/;

/**
 * Whether a reverse name is one that providers give to all of their addresses: it contains the address, or a word for access lines.
 * Names of mail servers are not generic, and words in the organizational domain do not count. Linear in the length of the name.
 */
export const isGenericName = (name: string, ip: string): boolean => {
  const below = labelsBelow(name);
  if (MAIL.test(below)) return false;
  if (PLACEHOLDER.test(name) || holdsAddress(below, ip)) return true;
  return !SERVER.test(below) && DYNAMIC.test(below);
};

/** The labels below the organizational domain, each with its dot; all of them where there is none. */
const labelsBelow = (name: string): string => {
  const organisation = organisationalDomain(name);
  return organisation === null ? `${name}.` : name.slice(0, name.length - organisation.length);
};

const holdsAddress = (name: string, ip: string): boolean => {
  if (ip.includes(":")) return holdsGroups(name, ip);
  const octets = ip.split(".");
  const numbers = (name.match(/\d+/g) ?? []).map(Number);
  const hex = octets.map((octet) => Number(octet).toString(16).padStart(2, "0")).join("");
  const padded = octets.map((octet) => octet.padStart(3, "0")).join("");
  const isWritten = name.includes(hex) || name.includes(padded);
  return isWritten || octets.every((octet) => numbers.includes(Number(octet)));
};

/** This many consecutive groups of an IPv6 address are not in a name by chance. */
const GROUPS_MIN = 3;

const holdsGroups = (name: string, ip: string): boolean => {
  const groups = ip.split(":").slice(0, GROUPS_MIN);
  if (groups.length < GROUPS_MIN || groups.includes("")) return false;
  const padded = groups.map((group) => group.padStart(4, "0"));
  return ["", "-", "."].some((joint) => name.includes(groups.join(joint)) || name.includes(padded.join(joint)));
};
