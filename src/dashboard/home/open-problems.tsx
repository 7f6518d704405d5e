import { ACKNOWLEDGED_DAYS, type AcknowledgedWarning, type MachineState } from "../../doctor/acknowledgements.ts";
import type { DoctorAdvice } from "../../doctor/doctor.ts";
import type { AttentionItem } from "../../foundation/base/attention.ts";
import { Button, Field, MoreForm, PostForm, SelectField } from "../components/form.tsx";
import { Badge, ButtonLink, HelpText, Link } from "../components/inline.tsx";
import { countText, Time } from "../components/figures.tsx";
import { Panel } from "../components/panel.tsx";
import { MACHINE_UNCHECKED } from "../first-steps.ts";
import { usePage } from "../visit.ts";

export interface OpenProblemsProps {
  /** The worst first. */
  readonly items: readonly AttentionItem[];
  /** Null for those whom the machine does not concern. */
  readonly machine: MachineState | null;
  /** What a caller is called, by its `keyId`; null for one that was removed. */
  readonly nameOf: (keyId: string) => string | null;
  /** Whether a target or a domain is monitored. */
  readonly isMonitoring: boolean;
}

/** Further items are folded. */
const SHOWN_MAX = 5;
/** More items are on the pages of their sections. */
const FOLDED_MAX = 95;

/** What needs somebody, the worst first, and what is known about this machine in one line. */
export const OpenProblems = (props: OpenProblemsProps) => {
  const { items, machine } = props;
  const { nowMs } = usePage();
  const folded = items.slice(SHOWN_MAX, SHOWN_MAX + FOLDED_MAX);
  const more = items.length - SHOWN_MAX;
  return (
    <Panel
      title="Open problems"
      aside={
        <>
          as of <Time atMs={nowMs} style="clock" />
        </>
      }
      isFlush
    >
      {items.length === 0 && <NothingOpen {...props} />}
      <Items items={items.slice(0, SHOWN_MAX)} />
      {folded.length > 0 && (
        <details class="fold">
          <summary>{more} more</summary>
          <Items items={folded} />
          {more > FOLDED_MAX && (
            <p class="panel-body soft small">
              {countText(more - FOLDED_MAX, "more thing")}, less urgent. The sections in the navigation show all of
              them.
            </p>
          )}
        </details>
      )}
      {machine !== null && <MachineLine {...props} machine={machine} />}
    </Panel>
  );
};

const NothingOpen = ({ isMonitoring }: OpenProblemsProps) => (
  <div class="panel-body">
    <p>
      {isMonitoring ? (
        <>
          <Badge kind="ok">All clear</Badge> Nothing is open: nothing is listed, no DMARC record has changed, and no
          list is stuck.
        </>
      ) : (
        <>
          <Badge kind="unknown">Not monitored</Badge> No domain and no address is monitored yet. No list is stuck.
        </>
      )}
    </p>
  </div>
);

const Items = ({ items }: Pick<OpenProblemsProps, "items">) => (
  <ul class="items">
    {items.map((item) => (
      <li key={`${item.action.path} ${item.title}`}>
        <span>
          <Badge kind={item.severity}>{item.label}</Badge>
        </span>
        <div class="prose">
          <h3>
            <HelpText text={item.title} />
          </h3>
          <p class="soft">
            {item.sinceMs !== null && (
              <>
                Since <Time atMs={item.sinceMs} style="full" />.{" "}
              </>
            )}
            <HelpText text={item.detail} />
          </p>
        </div>
        <ButtonLink href={item.action.path}>{item.action.text}</ButtonLink>
      </li>
    ))}
  </ul>
);

/** "Backups, Clock (2)": the titles of warnings, each once. */
const titlesOf = (warnings: readonly DoctorAdvice[]): string =>
  [...Map.groupBy(warnings, ({ title }) => title)]
    .map(([title, same]) => (same.length === 1 ? title : `${title} (${same.length})`))
    .join(", ");

/** The warnings of the doctor in one line, with what can be done about them behind it. Failures are items. */
const MachineLine = ({ machine, nameOf }: OpenProblemsProps & { readonly machine: MachineState }) => {
  const { warnings, acknowledged, checkedAtMs, isRunning, failures } = machine;
  const { form } = usePage();
  const isAgain = form?.action.startsWith("/machine/") === true;
  if (checkedAtMs === null)
    return (
      <p class="panel-foot soft small">
        {isRunning ? "This machine is being checked." : MACHINE_UNCHECKED}{" "}
        <Link href="/settings/sender">{isRunning ? "Show the checks" : "Check it now"}</Link>
      </p>
    );
  if (warnings.length + acknowledged.length === 0)
    return failures.length > 0 ? null : (
      <p class="panel-foot soft small">
        This machine is in order, checked <Time atMs={checkedAtMs} />.
      </p>
    );
  return (
    <details class="fold machine" open={isAgain}>
      <summary>
        {warnings.length > 0 && (
          <>
            <Badge kind="warn">{countText(warnings.length, "warning")}</Badge> about this machine: {titlesOf(warnings)}
          </>
        )}
        {acknowledged.length > 0 && (
          <span class="soft">
            {warnings.length > 0 ? "; " : "Warnings about this machine: "}
            {acknowledged.length} acknowledged
          </span>
        )}
      </summary>
      <ul class="items plain">
        {warnings.map((warning) => (
          <OpenWarning key={warning.key} warning={warning} />
        ))}
        {acknowledged.map((one) => (
          <KnownWarning key={one.warning.key} {...one} nameOf={nameOf} />
        ))}
      </ul>
    </details>
  );
};

const WarningText = ({ warning: { title, detail, remedy } }: { readonly warning: DoctorAdvice }) => (
  <div class="prose">
    <h3>{title}</h3>
    <p class="soft">
      <HelpText text={remedy === null ? detail : `${detail} ${remedy}`} />
    </p>
  </div>
);

const OpenWarning = ({ warning }: { readonly warning: DoctorAdvice }) => (
  <li>
    <WarningText warning={warning} />
    <MoreForm label="Acknowledge" action={`/machine/${warning.key}/acknowledge`}>
      <Field name="reason" label="Reason" isRequired hint="For those who come after you. At most 200 characters." />
      <SelectField
        name="days"
        label="Until"
        value="30"
        options={ACKNOWLEDGED_DAYS.map((days) => [String(days), `in ${days} days`])}
      />
      <p class="hint">It shows again at that time, when another warning of this check appears, or when it fails.</p>
      <div class="actions">
        <Button kind="main">Acknowledge</Button>
      </div>
    </MoreForm>
  </li>
);

const KnownWarning = ({
  warning,
  acknowledgement: { reason, untilMs, acknowledgedBy, acknowledgedAtMs },
  nameOf,
}: AcknowledgedWarning & Pick<OpenProblemsProps, "nameOf">) => (
  <li>
    <WarningText warning={warning} />
    <PostForm action={`/machine/${warning.key}/withdraw`}>
      <Button>Show again</Button>
    </PostForm>
    <p class="detail">
      Acknowledged until <Time atMs={untilMs} style="day" /> by {nameOf(acknowledgedBy) ?? "a user that was removed"},{" "}
      <Time atMs={acknowledgedAtMs} />: “{reason}”
    </p>
  </li>
);
