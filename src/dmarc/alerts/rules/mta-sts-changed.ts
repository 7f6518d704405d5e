import { z } from "zod";
import { textField, textsField } from "../../../foundation/http/schema-fields.ts";
import { action } from "../../../notifications/mail/mail-content.ts";
import { POLICY_MODES } from "../../records/sts/policy-text.ts";
import { alertRule, domainLink, texts } from "./alert-rule.ts";

/** Raised when the MX records change the policy that this service serves: see `insight/sts/hosting.ts`. */
export const MTA_STS_CHANGED = alertRule({
  name: "mta_sts_changed",
  words: "MTA-STS policy changed",
  description:
    "The MTA-STS policy that this service serves changed with the MX records; the TXT record needs its new id.",
  summary: "The MTA-STS policy of a domain changed with its MX records",
  title: "the MTA-STS policy changed",
  data: z.object({
    policy_mode: z.enum(POLICY_MODES).describe("Mode of the policy."),
    added: textsField("MX hosts that the policy names now."),
    removed: textsField("MX hosts that it names no more."),
    policy_id: textField("The new id."),
    record: z
      .object({ host: textField("Name of the record."), value: textField("Text of the record.") })
      .describe("The TXT record to publish."),
  }),
  example: {
    policy_mode: "enforce",
    added: ["mx2.example.com"],
    removed: [],
    policy_id: "0f5a3c9d1b7e42a68c10",
    record: { host: "_mta-sts.example.com", value: "v=STSv1; id=0f5a3c9d1b7e42a68c10;" },
  },
  mail: ({ added, removed, record }, domain) => [
    texts(
      ...(added.length === 0 ? [] : [`Added: ${added.join(", ")}`]),
      ...(removed.length === 0 ? [] : [`Removed: ${removed.join(", ")}`]),
    ),
    action(`Publish this TXT record at ${record.host}, so that senders fetch the new policy:`, record.value),
    domainLink(domain, "record", "Show the policy"),
  ],
  open: {
    facts: (store, domains) => store.hostedPolicies(domains),
    holds: ({ number, data: { policy_id: id } }, hosted) => hosted.has(`${number}`) && !hosted.has(`${number} ${id}`),
    attention: ({ policy_mode: mode, record }, { domain, path }) => ({
      severity: mode === "enforce" ? "bad" : "warn",
      label: "MTA-STS",
      title: `${domain}: the MTA-STS policy changed with the MX records`,
      detail: `Senders keep the old policy until ${record.host} has the TXT record "${record.value}".`,
      action: { text: "Publish the record", path: `${path}/record#mta-sts` },
    }),
  },
});
