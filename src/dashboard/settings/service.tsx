import { HelpText, Link, Badge, type Kind } from "../components/inline.tsx";
import { Callout, Columns, PageHead, Panel, Row, Rows } from "../components/panel.tsx";
import { Time, durationText, bytesText, countText, numberText } from "../components/figures.tsx";
import { usePage, redirectTo } from "../visit.ts";
import { formAction, page } from "../page.ts";
import { Button, PostForm } from "../components/form.tsx";
import type { LoggedProblem } from "../../foundation/base/log.ts";
import { KeptFor, type RetentionFact } from "./account.tsx";
import { type DoctorAdvice, troubleText } from "../../doctor/doctor.ts";
import { Table } from "../components/table.tsx";

export interface ServiceUseCases {
  readonly readFacts: () => ServiceFacts;
  /** Has the next run, within a minute, write a backup; null where none are scheduled. */
  readonly requestBackup: (() => void) | null;
}

const PATH = "/settings/service";

/** The state of the service, for its operators. */
export const createServicePages = ({ readFacts, requestBackup }: ServiceUseCases) => [
  page({ path: PATH }, () => ({
    title: "Service",
    section: "settings",
    body: <ServicePage {...readFacts()} />,
  })),
  formAction({ path: BACKUP_PATH }, ({ viewer }) => {
    if (requestBackup === null) return redirectTo(viewer, PATH, { bad: "Set POSTWARDEN_BACKUP_DIR first." });
    requestBackup();
    return redirectTo(viewer, PATH, {
      ok: "The backup begins within a minute. It is verified before older ones are removed.",
    });
  }),
];

const ServicePage = (facts: ServiceFacts) => (
  <>
    <PageHead
      title="Service"
      meta={
        <span>
          Postwarden {facts.version}
          {facts.commit === null ? "" : ` (${facts.commit.slice(0, 12)})`} · started <Time atMs={facts.startedAtMs} /> ·{" "}
          {bytesText(facts.memoryBytes)} of memory
        </span>
      }
      actions={
        facts.hasManual && (
          <a class="button" href="/docs/release-notes">
            Release notes
          </a>
        )
      }
    />
    <Conclusion {...facts} />
    <Columns
      side={
        <>
          <Backups {...facts} />
          <Sizes {...facts} />
        </>
      }
    >
      <Egresses {...facts} />
      <Queues {...facts} />
      <KeptFor facts={facts.retention} />
    </Columns>
    <Problems {...facts} />
  </>
);

const Conclusion = ({ blockers, findings, machine }: ServiceFacts) => {
  const all = [...blockers, ...findings];
  const trouble = machine === null ? null : troubleText(machine);
  if (all.length === 0 && machine?.every(({ severity }) => severity === "ok") !== false)
    return <Callout kind="ok" label="Works" title="Addresses are verified, reports and checks are processed" />;
  return (
    <Callout
      kind={blockers.length > 0 ? "bad" : "warn"}
      label={blockers.length > 0 ? "Paused" : "Look at this"}
      title={
        blockers.length > 0
          ? "Addresses cannot be verified now"
          : findings.length > 0
            ? countText(findings.length, "open problem")
            : "It works; the check of this machine has findings"
      }
    >
      <ul class="plain-list">
        {all.map((text) => (
          <li key={text}>{text}</li>
        ))}
        {trouble !== null && (
          <li>
            Check of this machine: <Link href="/settings/sender">{trouble}</Link>
          </li>
        )}
      </ul>
    </Callout>
  );
};

const SEVERITY_KINDS: Readonly<Record<DoctorAdvice["severity"], Kind>> = { ok: "ok", warn: "warn", fail: "bad" };

const SEVERITY_WORDS: Readonly<Record<DoctorAdvice["severity"], string>> = {
  ok: "ok",
  warn: "warning",
  fail: "failure",
};

const NETWORK_AREAS: ReadonlySet<string> = new Set(["DNS", "Egress"]);

const Egresses = ({ egresses, cooldowns, machine }: ServiceFacts) => (
  <Panel title="DNS and egress" aside={<Link href="/settings/sender">Sending identity</Link>} isFlush>
    <ul class="findings">
      {egresses.map(({ name, problem, cooldowns: own, cooldownCount }) => (
        <li key={name}>
          <Badge kind={problem !== null ? "bad" : cooldownCount > 0 ? "warn" : "ok"}>
            {problem !== null ? "broken" : cooldownCount > 0 ? "cooldown" : "usable"}
          </Badge>
          <div>
            <h3 class="mono">{name}</h3>
            {problem !== null && <p>It {problem}</p>}
            {own.map(({ provider, leftMs }) => (
              <p key={provider}>
                {provider} blocked it: on cooldown there for {durationText(leftMs)} more.
              </p>
            ))}
            {cooldownCount > own.length && <p>and {cooldownCount - own.length} more</p>}
          </div>
        </li>
      ))}
      {machine === null ? (
        <li>
          <Badge kind="unknown">not checked</Badge>
          <div>
            <h3>DNS servers and port 25</h3>
            <p>Checked an hour after the start at the latest, then daily. Sending identity checks them now.</p>
          </div>
        </li>
      ) : (
        machine
          .filter(({ area }) => NETWORK_AREAS.has(area))
          .map(({ title, severity, detail }) => (
            <li key={`${title} ${detail}`}>
              <Badge kind={SEVERITY_KINDS[severity]}>{SEVERITY_WORDS[severity]}</Badge>
              <div>
                <h3>{title}</h3>
                <p>
                  <HelpText text={detail} />
                </p>
              </div>
            </li>
          ))
      )}
      <li>
        <Badge kind={cooldowns > 0 ? "info" : "ok"}>{numberText(cooldowns)}</Badge>
        <div>
          <h3>Hosts and providers on cooldown</h3>
          <p>They asked for fewer connections, or repeatedly timed out. Probes to them wait.</p>
        </div>
      </li>
    </ul>
  </Panel>
);

const Queues = ({ queues }: ServiceFacts) => {
  const { nowMs } = usePage();
  return (
    <Panel title="Queues" isFlush>
      <Rows>
        {queues.map(({ what, count, oldestMs }) => (
          <Row key={what} label={what}>
            {count !== null && <span class="num">{numberText(count)} </span>}
            {oldestMs !== null && nowMs > oldestMs && (
              <span class="soft small">the oldest waits for {durationText(nowMs - oldestMs)}</span>
            )}
            {count === null && oldestMs === null && "none"}
          </Row>
        ))}
      </Rows>
    </Panel>
  );
};

const Problems = ({ problems }: ServiceFacts) => (
  <Panel title="Recent warnings and errors" aside="since the start" isFlush>
    {problems.length === 0 ? (
      <div class="panel-body">
        <p>
          <Badge kind="ok">None</Badge> The log has had no warning or error.
        </p>
      </div>
    ) : (
      <Table
        caption="Warnings and errors of the log, the newest first"
        columns={[{ title: "When" }, { title: "Level" }, { title: "Message", isText: true }]}
        rows={problems.map(({ atMs, level, message, fields }, at) => ({
          key: String(at),
          cells: [
            <Time atMs={atMs} style="full" />,
            <Badge kind={level === "error" ? "bad" : "warn"}>{level}</Badge>,
            <>
              {message}
              {fields.length > 0 && (
                <dl class="log-fields">
                  {fields.map(([name, value]) => (
                    <div key={name}>
                      <dt>{name}</dt>
                      <dd class="mono">{value}</dd>
                    </div>
                  ))}
                </dl>
              )}
            </>,
          ],
        }))}
      />
    )}
  </Panel>
);

const BACKUP_PATH = "/settings/service/backup";

/** Scheduled backups, and the button for one now. */
const Backups = ({ backups }: ServiceFacts) => (
  <Panel title="Backups">
    {backups === null ? (
      <p>
        <Badge kind="warn">None</Badge> Set <code>POSTWARDEN_BACKUP_DIR</code> to a directory on another disk. Backups
        are then written daily.
      </p>
    ) : (
      <>
        {backups.problem !== null && (
          <p>
            <Badge kind="bad">Failed</Badge> {backups.problem}
          </p>
        )}
        {backups.stored.length === 0 ? (
          <p>No backup was seen yet. The directory is looked at every minute.</p>
        ) : (
          <ul class="plain-list">
            {backups.stored.slice(0, 7).map(({ file, atMs }, at) => (
              <li key={file}>
                <Time atMs={atMs} style="full" />
                {at === 0 && backups.newest !== null && (
                  <p class="soft small">
                    <code>{file}</code>, {bytesText(backups.newest.bytes)}
                    {backups.newest.isVerified && ", verified"}
                  </p>
                )}
              </li>
            ))}
          </ul>
        )}
        {(backups.isRunning || backups.isRequested) && (
          <p role="status">{backups.isRunning ? "A backup is being written." : "A backup begins within a minute."}</p>
        )}
        <PostForm action={BACKUP_PATH}>
          <Button icon="server" isDisabled={backups.isRequested || backups.isRunning}>
            Back up now
          </Button>
        </PostForm>
      </>
    )}
  </Panel>
);

/** What is on the disk. */
const Sizes = ({ sizes, disk }: ServiceFacts) => (
  <Panel title="Data" isFlush>
    <Rows>
      {sizes.map(({ what, bytes }) => (
        <Row key={what} label={what}>
          {bytesText(bytes)}
        </Row>
      ))}
      {disk !== null && (
        <Row label="Free on the disk">
          {bytesText(disk.freeBytes)} of {bytesText(disk.totalBytes)}
        </Row>
      )}
    </Rows>
  </Panel>
);

/** Scheduled backups, the newest first. `problem`: why the last one failed. */
interface BackupFacts {
  readonly stored: ReadonlyArray<{ readonly file: string; readonly atMs: number }>;
  readonly problem: string | null;
  readonly isRequested: boolean;
  /** A copy is being written. */
  readonly isRunning: boolean;
  /** The newest backup: its size, and whether this process has written and verified it; null where it cannot be read. */
  readonly newest: { readonly bytes: number; readonly isVerified: boolean } | null;
}

/** An egress. `problem`: why it cannot be used, as a sentence without its subject. */
interface EgressFacts {
  readonly name: string;
  readonly problem: string | null;
  readonly cooldowns: ReadonlyArray<{ readonly provider: string; readonly leftMs: number }>;
  /** Cooldowns beyond the first ones are only counted. */
  readonly cooldownCount: number;
}

/** How the service fares. Times are milliseconds since 1970, sizes bytes; null where nothing is known. */
export interface ServiceFacts {
  readonly version: string;
  /** Whether the service has the manual, with the release notes. */
  readonly hasManual: boolean;
  readonly commit: string | null;
  readonly startedAtMs: number;
  readonly memoryBytes: number;
  /** Why addresses cannot be verified, and what else needs attention. */
  readonly blockers: readonly string[];
  readonly findings: readonly string[];
  /** Sizes of what is on the disk. */
  readonly sizes: ReadonlyArray<{ readonly what: string; readonly bytes: number }>;
  readonly disk: { readonly freeBytes: number; readonly totalBytes: number } | null;
  readonly backups: BackupFacts | null;
  readonly egresses: readonly EgressFacts[];
  /** What the last check of the machine found; null before the first. */
  readonly machine: readonly DoctorAdvice[] | null;
  /** Mail hosts and providers that are left alone for a while. */
  readonly cooldowns: number;
  readonly queues: ReadonlyArray<{
    readonly what: string;
    readonly count: number | null;
    readonly oldestMs: number | null;
  }>;
  readonly problems: readonly LoggedProblem[];
  readonly retention: readonly RetentionFact[];
}
