import ipaddr from "ipaddr.js";
import { z } from "zod";

/** What a source can be classified as. */
export const SOURCE_CLASSES = ["authorized", "misconfigured", "forwarder", "unknown", "threat"] as const;

const ASN_MAX = 4_294_967_295;
export const SOURCE_RULES_MAX = 50;

const isNetwork = (text: string): boolean => ipaddr.IPv4.isValidCIDR(text) || ipaddr.IPv6.isValidCIDR(text);

/** A rule of the user's: sources of which every address fits all conditions get the classification. */
export const sourceRuleSchema = z
  .strictObject({
    reverse_name: z.string().toLowerCase().min(1).max(253).optional().meta({
      description:
        "`none`: no forward-confirmed reverse name; `generic`: one that providers give to customers at home; else a domain that the name is at or below.",
    }),
    network: z.string().refine(isNetwork, "Must be a network such as 192.0.2.0/24 or 2001:db8::/32").optional(),
    asn: z.int().min(1).max(ASN_MAX).optional(),
    country: z
      .string()
      .toUpperCase()
      .regex(/^[A-Z]{2}$/, "Must be a country code of two letters, such as DE")
      .optional(),
    authenticated: z.boolean().optional().meta({ description: "Whether SPF or DKIM passed for any domain." }),
    classification: z.enum(SOURCE_CLASSES),
  })
  .refine((rule) => Object.keys(rule).length > 1, "Must have at least one condition")
  .meta({ title: "DmarcSourceRule" });

export type SourceRule = Readonly<z.infer<typeof sourceRuleSchema>>;

/** What rules look at: one address of a source. */
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

/** Whether an address fits all conditions of a rule. What is not known fits no condition. */
export const fitsRule = (rule: SourceRule, address: RuledAddress): boolean =>
  (rule.reverse_name === undefined || fitsName(rule.reverse_name, address)) &&
  (rule.network === undefined || isWithin(address.ip, rule.network)) &&
  (rule.asn === undefined || rule.asn === address.asn) &&
  (rule.country === undefined || rule.country === address.country) &&
  (rule.authenticated === undefined || rule.authenticated === address.isAuthenticated);

const fitsName = (wanted: string, { name, isAsked, isGeneric }: RuledAddress): boolean => {
  if (!isAsked) return false;
  if (wanted === "none") return name === null;
  if (wanted === "generic") return name !== null && isGeneric;
  return name !== null && (name === wanted || name.endsWith(`.${wanted}`));
};

const isWithin = (ip: string, network: string): boolean => {
  const address = ipaddr.parse(ip);
  const [base, bits] = ipaddr.parseCIDR(network);
  return address.kind() === base.kind() && address.match(base, bits);
};
