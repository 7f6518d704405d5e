/** One finding of `doctor`. `warn` needs attention; `fail` keeps Postwarden from working. */
export interface DoctorCheck {
  readonly check: string;
  readonly state: "ok" | "warn" | "fail";
  /** Sentences; those of `warn` and `fail` end with what to do. */
  readonly message: string;
}

export const check = (name: string, state: DoctorCheck["state"], message: string): DoctorCheck => ({
  check: name,
  state,
  message,
});
