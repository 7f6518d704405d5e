import { z } from "zod";
import { AppError } from "../../foundation/base/errors.ts";
import type { DomainRow } from "../../dmarc/records/domains/domain-store.ts";
import { SOURCE_RULES_MAX, sourceRuleSchema } from "../../dmarc/records/domains/source-rules.ts";
import { CLASSIFICATIONS } from "../../dmarc/insight/sources/rollup-store.ts";
import { optionalText } from "../form-input.ts";
import { formAction, type PageRoute } from "../page.ts";
import { redirectTo } from "../redirect.ts";
import { domainParameters } from "./domain-page.tsx";
import type { DmarcPageUseCases } from "./page-use-cases.ts";
import { FIRST_SOURCES, sourcesView } from "./sources-page.tsx";

const TEXT_MAX = 253;

type StoredRule = DomainRow["sourceRules"][number];

const form = z.object({
  reverse_name: optionalText(TEXT_MAX),
  network: optionalText(TEXT_MAX),
  asn: optionalText(TEXT_MAX),
  country: optionalText(TEXT_MAX),
  authenticated: z.enum(["", "true", "false"]).default(""),
  classification: z.enum(CLASSIFICATIONS),
});

const ruleOf = ({ authenticated, asn, ...texts }: z.output<typeof form>): StoredRule => {
  const given = Object.entries(texts).filter(([, value]) => value !== null);
  const read = sourceRuleSchema.safeParse({
    ...Object.fromEntries(given),
    ...(asn === null ? {} : { asn: Number(asn) }),
    ...(authenticated === "" ? {} : { authenticated: authenticated === "true" }),
  });
  // A field that was not given is absent, not undefined.
  if (read.success) return read.data as StoredRule;
  throw new AppError("Invalid request body", {
    issues: read.error.issues.map(({ path, message }) => ({ path: path.join("."), message })),
  });
};

/** Add and remove rules about the sources of a domain. */
export const ruleActions = (useCases: DmarcPageUseCases): readonly PageRoute[] => [
  formAction(
    { path: "/dmarc/:id/rules", params: domainParameters, form },
    async ({ viewer, params: { id }, form: given }) => {
      const rule = ruleOf(given);
      const { sourceRules } = useCases.domains.find(viewer.caller, id);
      if (sourceRules.length >= SOURCE_RULES_MAX)
        throw new AppError("conflict", { message: `A domain can have ${SOURCE_RULES_MAX} rules. Remove one first.` });
      await useCases.domains.change(viewer.caller, id, { sourceRules: [...sourceRules, rule] });
      return redirectTo(viewer, `/dmarc/${id}/sources`, { ok: "Rule added." });
    },
    { rerender: ({ viewer, params: { id } }) => sourcesView(useCases, viewer, { id, state: FIRST_SOURCES }) },
  ),
  formAction(
    { path: "/dmarc/:id/rules/remove", params: domainParameters, form: z.object({ rule: z.string() }) },
    async ({ viewer, params: { id }, form: { rule } }) => {
      const { sourceRules } = useCases.domains.find(viewer.caller, id);
      const kept = sourceRules.filter((one) => JSON.stringify(one) !== rule);
      await useCases.domains.change(viewer.caller, id, { sourceRules: kept });
      return redirectTo(viewer, `/dmarc/${id}/sources`, { ok: "Rule removed." });
    },
  ),
];
