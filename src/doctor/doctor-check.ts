/** One finding of `doctor`. `warn` needs attention; `fail` keeps Postwarden from working. */
export interface DoctorCheck {
  readonly check: string;
  readonly state: "ok" | "warn" | "fail";
  /** Sentences; those of `warn` and `fail` end with what to do. */
  readonly message: string;
}

/** The findings of one check. */
export const doctorFindings = (check: string) => ({
  ok: (message: string): DoctorCheck => ({ check, state: "ok", message }),
  warn: (message: string): DoctorCheck => ({ check, state: "warn", message }),
  fail: (message: string): DoctorCheck => ({ check, state: "fail", message }),
});
