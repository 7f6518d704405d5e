import type { Clock } from "../base/clock.ts";

/** One line as it was sent or received, without its line end, perhaps cut short. */
export interface SmtpTranscriptLine {
  /** Milliseconds since the connect began. */
  readonly atMs: number;
  readonly from: "us" | "server";
  readonly text: string;
}

/** The opening (banner, EHLO, STARTTLS) and each probe keep this many lines; later ones are not recorded. */
export const TRANSCRIPT_LINES_MAX = 128;
/** Longer lines are cut and end in "…". */
export const TRANSCRIPT_LINE_CHARS_MAX = 512;

/** Records a transcript in bounded memory: the opening of the session, and the lines of the latest probe. */
export class TranscriptRecorder {
  private readonly opening: SmtpTranscriptLine[] = [];
  private current = this.opening;

  constructor(
    private readonly clock: Clock,
    private readonly startedMs: number,
  ) {}

  /** Adds lines that were sent or received now. */
  add(from: "us" | "server", texts: readonly string[]): void {
    const atMs = Math.round(this.clock.monotonicMs() - this.startedMs);
    for (const text of texts) {
      if (this.current.length >= TRANSCRIPT_LINES_MAX) return;
      this.current.push({ atMs, from, text: cut(text) });
    }
  }

  /** Discards the lines of the probe before, keeps the opening, and records the next probe. */
  beginProbe(): void {
    this.current = [];
  }

  /** The opening and the latest probe, in order: a copy, which later lines do not change. */
  lines(): readonly SmtpTranscriptLine[] {
    return this.current === this.opening ? [...this.opening] : [...this.opening, ...this.current];
  }
}

const cut = (text: string): string =>
  text.length > TRANSCRIPT_LINE_CHARS_MAX ? `${text.slice(0, TRANSCRIPT_LINE_CHARS_MAX - 1)}…` : text;
