import type { SignalsKey } from "./signal-words.ts";
import { SIGNAL_LABELS } from "./signal-words.ts";
import type { Signal, VerificationResult } from "../../verify/result.ts";
import { confidenceReason, qualityParts } from "../../verify/scores.ts";
import { Badge, type Kind } from "../components/badge.tsx";
import { ScoreBar } from "../components/chart.tsx";
import { Panel, Row, Rows } from "../components/panel.tsx";

const SIGNAL_KINDS: Readonly<Record<Signal, Kind>> = {
  pass: "ok",
  warn: "warn",
  fail: "bad",
  unknown: "unknown",
  skipped: "unknown",
};

const scoreKind = (score: number): "ok" | "warn" | "bad" => {
  if (score >= 80) return "ok";
  return score > 20 ? "warn" : "bad";
};

/** The two scores of a result, and how they came about. */
export const ScoresPanel = ({ result }: { readonly result: VerificationResult }) => {
  const { verdict, sub_status: subStatus, signals, quality_score: quality, confidence } = result;
  const { base, deductions, range } = qualityParts(verdict, subStatus, signals);
  const reason = confidenceReason(subStatus, signals);
  return (
    <Panel title="Scores">
      <ScoreBar label="Quality" value={quality} kind={scoreKind(quality)} />
      <ScoreBar
        label="Confidence"
        value={confidence}
        kind={confidence >= 80 ? "ok" : confidence >= 50 ? "warn" : "unknown"}
      />
      <details class="figures">
        <summary>How they were computed</summary>
        <div class="prose small soft">
          <p>
            Quality says how good it is to mail this address: {base} points for <code>{subStatus}</code>
            {deductions.map(({ signal, points }) => `, ${points} less for ${SIGNAL_LABELS[signal].toLowerCase()}`)},
            within {range[0]} to {range[1]} for {verdict}.
          </p>
          <p>
            Confidence says how certain the verdict is: {confidence} for <code>{subStatus}</code>.
            {reason !== null && ` ${reason}`}
          </p>
        </div>
      </details>
    </Panel>
  );
};

/** The ten signals of a result. */
export const SignalsPanel = ({ result }: { readonly result: VerificationResult }) => (
  <Panel title="Signals" isFlush>
    <Rows>
      {Object.entries(SIGNAL_LABELS).map(([name, label]) => {
        const value = result.signals[name as SignalsKey];
        return (
          <Row key={name} label={label}>
            <Badge kind={SIGNAL_KINDS[value]} {...(value === "skipped" ? { icon: "minus" as const } : {})}>
              {value}
            </Badge>
          </Row>
        );
      })}
    </Rows>
  </Panel>
);
