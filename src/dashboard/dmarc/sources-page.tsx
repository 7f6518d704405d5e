import { z } from "zod";
import { type Classification, CLASSIFICATIONS } from "../../dmarc/insight/sources/rollup-store.ts";
import { isSourceCursor, pageOfSources, type SourceListQuery } from "../../dmarc/insight/queries/source-routes.ts";
import type { Source } from "../../dmarc/insight/sources/source-response.ts";
import { decodeCursor, encodeCursor } from "../../foundation/http/route-input.ts";
import { CheckField, Field, Filters, SelectField } from "../components/form.tsx";
import { Empty, Panel } from "../components/panel.tsx";
import { ButtonLink, DownloadLink } from "../components/inline.tsx";
import { countText } from "../components/figures.tsx";
import { Pager, rowsParameter } from "../components/pager.tsx";
import { page, type PageRoute, formAction, flag, optionalText } from "../page.ts";
import { type View, type Viewer, redirectTo } from "../visit.ts";
import { BulkClassForm, SourceRules, SourceTable } from "./source-classes.tsx";
import { CLASS_WORDS } from "./dmarc-words.ts";
import { domainParameters } from "./domain-page.tsx";
import { DomainHead, RangeLinks, rangeParameter } from "./domain-head.tsx";
import type { DmarcPageUseCases } from "./use-cases.ts";
import { AppError } from "../../foundation/base/errors.ts";
import type { DomainRow } from "../../dmarc/records/domains/domain-store.ts";
import { SOURCE_RULES_MAX, sourceRuleSchema } from "../../dmarc/records/domains/source-rules.ts";

const TEXT_CHARACTERS_MAX = 253;

const query = z.object({
  days: rangeParameter,
  class: z.enum(CLASSIFICATIONS).optional(),
  text: z.string().trim().max(TEXT_CHARACTERS_MAX).default(""),
  failing: flag,
  networks: flag,
  cursor: z.string().transform(decodeCursor).refine(isSourceCursor).optional(),
  rows: rowsParameter,
});
type SourcesState = z.output<typeof query>;

/** The page without filters. */
const FIRST_SOURCES: SourcesState = query.parse({});

const listQuery = (
  { reading }: DmarcPageUseCases,
  { days, class: classification, text, failing, networks }: SourcesState,
): SourceListQuery => {
  const { fromDay, toDay } = reading.range(days);
  return { from: fromDay, to: toDay, classification, text, isFailing: failing, byNetwork: networks };
};

/** All sources of a domain, and the same as CSV. */
export const sourcesPages = (useCases: DmarcPageUseCases): readonly PageRoute[] => [
  page({ path: "/dmarc/:id/sources", params: domainParameters, query }, ({ viewer, params: { id }, query: state }) =>
    sourcesView(useCases, viewer, { id, state }),
  ),
  page(
    { path: "/dmarc/:id/sources.csv", params: domainParameters, query },
    async ({ request, viewer, params, query: state }) => {
      const { sources } = useCases;
      return sources.csv(request, await sources.list(viewer.caller, params.id, listQuery(useCases, state)));
    },
  ),
];

/** A page of the sources of a domain. */
const sourcesView = async (
  useCases: DmarcPageUseCases,
  viewer: Viewer,
  { id, state }: { readonly id: string; readonly state: SourcesState },
): Promise<View> => {
  const found = await useCases.sources.list(viewer.caller, id, listQuery(useCases, state));
  const { page: shown, next } = pageOfSources(found.sources, { after: state.cursor ?? null, limit: state.rows });
  const { domain } = found;
  return {
    title: `Sources of ${domain.domain}`,
    section: "dmarc",
    body: (
      <>
        <DomainHead
          domain={domain}
          current="sources"
          title={`Sources of ${domain.domain}`}
          meta={<span>{countText(found.sources.length, "source")} in this range</span>}
          actions={
            <>
              <RangeLinks days={state.days} />
              <ButtonLink href={`/dmarc/${id}/own-hosts?days=${state.days}`}>Own servers</ButtonLink>
              <DownloadLink href={`/dmarc/${id}/sources.csv?${parametersOf(state)}`}>CSV</DownloadLink>
            </>
          }
        />
        <Panel isFlush>
          <SourceFilters id={id} state={state} />
          {shown.length === 0 ? <NoSource id={id} /> : <ShownSources {...{ id, shown, days: state.days }} />}
          <Pager
            next={next === null ? null : encodeCursor(next)}
            shown={shown.length}
            total={found.sources.length}
            rows={state.rows}
          />
        </Panel>
        <SourceRules id={id} rules={domain.sourceRules} />
      </>
    ),
  };
};

const NoSource = ({ id }: { readonly id: string }) => (
  <Empty title="No source matches" action={<ButtonLink href={`/dmarc/${id}/sources`}>Show all sources</ButtonLink>}>
    <p>Change the filters, or choose a longer range.</p>
  </Empty>
);

const ShownSources = ({
  id,
  shown,
  days,
}: {
  readonly id: string;
  readonly shown: readonly Source[];
  readonly days: number;
}) => (
  <>
    <SourceTable domainId={id} sources={shown} query={`?days=${days}`} />
    <BulkClassForm domainId={id} />
  </>
);

const parametersOf = ({ days, class: classification, text, failing, networks }: SourcesState): string =>
  new URLSearchParams({
    days: String(days),
    text,
    ...(classification === undefined ? {} : { class: classification }),
    ...(failing ? { failing: "on" } : {}),
    ...(networks ? { networks: "on" } : {}),
  }).toString();

const classOption = (one: Classification) => [one, CLASS_WORDS[one].text] as const;

const SourceFilters = ({ id, state }: { readonly id: string; readonly state: SourcesState }) => (
  <Filters action={`/dmarc/${id}/sources`}>
    <input type="hidden" name="days" value={state.days} />
    <Field name="text" label="Name, domain or address" type="search" value={state.text} />
    <SelectField
      name="class"
      label="Class"
      value={state.class ?? ""}
      options={[["", "All"], ...CLASSIFICATIONS.map(classOption)]}
    />
    <CheckField name="failing" label="Only with failures to act on" isChecked={state.failing} />
    <CheckField name="networks" label="Unauthenticated mail by network" isChecked={state.networks} />
  </Filters>
);

type StoredRule = DomainRow["sourceRules"][number];

const ruleForm = z.object({
  reverse_name: optionalText(TEXT_CHARACTERS_MAX),
  network: optionalText(TEXT_CHARACTERS_MAX),
  asn: optionalText(TEXT_CHARACTERS_MAX),
  country: optionalText(TEXT_CHARACTERS_MAX),
  authenticated: z.enum(["", "true", "false"]).default(""),
  classification: z.enum(CLASSIFICATIONS),
});

const ruleOf = ({ authenticated, asn, ...texts }: z.output<typeof ruleForm>): StoredRule => {
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
    { path: "/dmarc/:id/rules", params: domainParameters, form: ruleForm },
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
