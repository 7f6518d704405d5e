import { enumField, optionalFlag } from "../../../foundation/http/schema-fields.ts";
import ipaddr from "ipaddr.js";
import { z } from "zod";

/** What a source can be classified as. */
export const SOURCE_CLASSES = ["authorized", "misconfigured", "forwarder", "unknown", "threat"] as const;

const ASN_MAX = 4_294_967_295;
export const SOURCE_RULES_MAX = 50;

const isNetwork = (text: string) => ipaddr.IPv4.isValidCIDR(text) || ipaddr.IPv6.isValidCIDR(text);

/** A rule of the user: sources whose addresses all meet every condition get the classification. */
export const sourceRuleSchema = z
  .strictObject({
    reverse_name: z.string().toLowerCase().min(1).max(253).optional().meta({
      description:
        "`none`: no forward-confirmed reverse name; `generic`: a name that providers give to all of their customers; otherwise a domain that the name is at or below.",
    }),
    network: z
      .string()
      .refine(isNetwork, "Must be a network such as 192.0.2.0/24 or 2001:db8::/32")
      .optional()
      .meta({ description: "The network of the address, in CIDR notation.", examples: ["192.0.2.0/24"] }),
    asn: z
      .int()
      .min(1)
      .max(ASN_MAX)
      .optional()
      .meta({ description: "The AS that announces the address.", examples: [64500] }),
    country: z
      .string()
      .toUpperCase()
      .regex(/^[A-Z]{2}$/, "Must be a country code of two letters, such as DE")
      .optional()
      .meta({ description: "The country of registration of the network, ISO 3166-1 alpha-2.", examples: ["DE"] }),
    authenticated: optionalFlag("Whether SPF or DKIM passed for any domain."),
    classification: enumField(SOURCE_CLASSES, "The class of sources that meet all conditions."),
  })
  .refine((rule) => Object.keys(rule).length > 1, "Must have at least one condition")
  .meta({ title: "DmarcSourceRule" });

/** As stored, in the order in which they are tried. */
export const sourceRulesSchema = z.array(sourceRuleSchema);

export type SourceRule = Readonly<z.infer<typeof sourceRuleSchema>>;

/** What rules are matched against: one address of a source. */
export interface RuledAddress {
  readonly ip: string;
  /** Confirmed; null for none. */
  readonly name: string | null;
  readonly isAsked: boolean;
  readonly isGeneric: boolean;
  readonly asn: number | null;
  readonly country: string | null;
  readonly isAuthenticated: boolean;
}

/** Finds the first rule that an address matches, null for none. It matches a rule if it meets all conditions; unknown meets none. */
export const createRuleFinder = (rules: readonly SourceRule[]): ((address: RuledAddress) => SourceRule | null) => {
  const read = rules.map((rule) => ({
    rule,
    network: rule.network === undefined ? null : ipaddr.parseCIDR(rule.network),
  }));
  return (address) => {
    // Parsing an address takes most of the time, so it is parsed once and only for rules with a network.
    let parsed: Address | null = null;
    const isWithin = (network: Network) => {
      parsed ??= ipaddr.parse(address.ip);
      return parsed.kind() === network[0].kind() && parsed.match(network);
    };
    const matches = ({ rule, network }: (typeof read)[number]) =>
      meetsOthers(rule, address) && (network === null || isWithin(network));
    return read.find(matches)?.rule ?? null;
  };
};

type Address = ReturnType<typeof ipaddr.parse>;
type Network = ReturnType<typeof ipaddr.parseCIDR>;

const meetsOthers = (rule: SourceRule, address: RuledAddress) =>
  (rule.reverse_name === undefined || matchesName(rule.reverse_name, address)) &&
  (rule.asn === undefined || rule.asn === address.asn) &&
  (rule.country === undefined || rule.country === address.country) &&
  (rule.authenticated === undefined || rule.authenticated === address.isAuthenticated);

const matchesName = (wanted: string, { name, isAsked, isGeneric }: RuledAddress) => {
  if (!isAsked) return false;
  if (wanted === "none") return name === null;
  if (wanted === "generic") return name !== null && isGeneric;
  return name !== null && (name === wanted || name.endsWith(`.${wanted}`));
};
