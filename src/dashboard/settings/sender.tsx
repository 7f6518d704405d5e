import type { MachineAcknowledgements } from "../../doctor/acknowledgements.ts";
import { type Doctor, type DoctorAdvice, troubleText } from "../../doctor/doctor.ts";
import { Callout, Empty, PageHead, Panel, Live } from "../components/panel.tsx";
import { Button, PostForm } from "../components/form.tsx";
import { HelpText, Badge, type Kind } from "../components/inline.tsx";
import { Time, countText } from "../components/figures.tsx";
import { formAction, page } from "../page.ts";
import { redirectTo } from "../visit.ts";

const PATH = "/settings/sender";
const KINDS: Readonly<Record<DoctorAdvice["severity"], Kind>> = { ok: "ok", warn: "warn", fail: "bad" };
const WORDS: Readonly<Record<DoctorAdvice["severity"], string>> = { ok: "ok", warn: "warning", fail: "failure" };

export interface SenderUseCases {
  readonly doctor: Doctor;
  readonly machine: Pick<MachineAcknowledgements, "state">;
}

/** "Sending identity": what the checks of this machine found, for operators. */
export const createSenderPages = ({ doctor, machine }: SenderUseCases) => [
  page({ path: PATH }, () => ({
    title: "Sending identity",
    section: "settings",
    body: <SenderPage doctor={doctor} machine={machine} />,
  })),
  formAction({ path: PATH }, ({ viewer }) => {
    // The page shows its end; a failure is in the log.
    const flash = doctor.start()
      ? { ok: "Checking this machine. This takes up to 25 seconds." }
      : { bad: "This machine was checked less than 30 seconds ago. Wait a moment." };
    return redirectTo(viewer, PATH, flash);
  }),
];

const RunForm = ({ label }: { readonly label: string }) => (
  <PostForm action={PATH}>
    <Button kind="main" icon="refresh-cw">
      {label}
    </Button>
  </PostForm>
);

const SenderPage = ({ doctor, machine }: SenderUseCases) => {
  const latest = doctor.latestFindings();
  const known = new Set(machine.state().acknowledged.map(({ warning }) => warning.key));
  const isRunning = doctor.isRunning;
  return (
    <>
      <PageHead
        title="Sending identity"
        meta={
          latest === null ? (
            "How mail hosts, resolvers and blocklists see this machine."
          ) : (
            <span>
              Checked <Time atMs={latest.atMs} />, and again every day
            </span>
          )
        }
      />
      <Live id="findings" everyS={3} isOn={isRunning}>
        {isRunning && <p role="status">Checking this machine…</p>}
        {latest === null ? (
          !isRunning && <NotYet />
        ) : (
          <Findings findings={latest.findings} isRunning={isRunning} known={known} />
        )}
      </Live>
    </>
  );
};

const NotYet = () => (
  <Panel title="Findings">
    <Empty title="Not checked since the service was started" action={<RunForm label="Check now" />}>
      <p>
        The check connects to a mail host on port 25, queries the DNS servers and blocklists, and looks at reverse DNS,
        the HELO name, disk, backups, report mail and alert mail. It sends no mail and takes up to 25 seconds.
      </p>
    </Empty>
  </Panel>
);

/** The subjects of the page, and the areas of the checks that belong to each. An area of no subject is part of the last. */
const SUBJECTS: ReadonlyArray<readonly [title: string, areas: readonly string[]]> = [
  ["Mail out", ["Sender", "Egress", "Alert mail"]],
  ["DNS", ["DNS", "Blocklists"]],
  ["Reports in", ["Report mail"]],
  ["Machine", ["Machine", "Data", "API"]],
];

const subjectOf = ({ area }: DoctorAdvice): string =>
  (SUBJECTS.find(([, areas]) => areas.includes(area)) ?? SUBJECTS.at(-1))?.[0] ?? area;

/** The worst of some findings. */
const worstOf = (findings: readonly DoctorAdvice[]): DoctorAdvice["severity"] =>
  (["fail", "warn"] as const).find((worst) => findings.some(({ severity }) => severity === worst)) ?? "ok";

interface SubjectProps {
  readonly findings: readonly DoctorAdvice[];
  /** The keys of acknowledged warnings. */
  readonly known: ReadonlySet<string>;
}

const Findings = ({ findings, isRunning, known }: SubjectProps & { readonly isRunning: boolean }) => {
  const worst = worstOf(findings);
  const bySubject = Map.groupBy(findings, subjectOf);
  return (
    <>
      <Callout
        kind={KINDS[worst]}
        label={WORDS[worst]}
        title={troubleText(findings)}
        actions={!isRunning && <RunForm label="Check again" />}
      >
        <p>
          {worst === "fail"
            ? "A failure keeps a part of the service from working. Settings take effect after a restart."
            : "A mail host decides by these whether it talks to you. Settings take effect after a restart."}
        </p>
      </Callout>
      {SUBJECTS.map(([title]) => (
        <Subject key={title} title={title} findings={bySubject.get(title) ?? []} known={known} />
      ))}
    </>
  );
};

/** The findings about one subject: what is to do, and folded, what is in order. */
const Subject = ({ title, findings, known }: SubjectProps & { readonly title: string }) => {
  if (findings.length === 0) return null;
  const worst = worstOf(findings);
  const troubled = findings.filter(({ severity }) => severity !== "ok");
  const fine = findings.filter(({ severity }) => severity === "ok");
  return (
    <Panel title={title} aside={<Badge kind={KINDS[worst]}>{troubleText(findings)}</Badge>} isFlush>
      {troubled.length > 0 && <FindingList findings={troubled} known={known} />}
      {fine.length > 0 && (
        <details class="panel-fold">
          <summary>{countText(fine.length, "check")} in order</summary>
          <FindingList findings={fine} known={known} />
        </details>
      )}
    </Panel>
  );
};

const FindingList = ({ findings, known }: SubjectProps) => (
  <ul class="findings">
    {findings.map(({ key, title, severity, detail, remedy }, at) => (
      <li key={at}>
        {known.has(key) ? (
          <Badge kind="unknown" icon="check">
            acknowledged
          </Badge>
        ) : (
          <Badge kind={KINDS[severity]}>{WORDS[severity]}</Badge>
        )}
        <div>
          <h3>{title}</h3>
          <p>
            <HelpText text={detail} />
          </p>
          {remedy !== null && (
            <p class="remedy">
              <HelpText text={remedy} />
            </p>
          )}
        </div>
      </li>
    ))}
  </ul>
);
