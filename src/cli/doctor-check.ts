/** What `doctor` says about one thing: fine, worth a look, or in the way of the work. */
export interface DoctorCheck {
  readonly check: string;
  readonly state: "ok" | "warn" | "fail";
  /** Sentences for people; what is not ok says how to mend it. */
  readonly message: string;
}

export const check = (name: string, state: DoctorCheck["state"], message: string): DoctorCheck => ({
  check: name,
  state,
  message,
});
