// A part that an application needs, before it is compared with what there is.
import type { ApplicationInput, HttpsState } from "../model/application.ts";

export type Fields = Record<string, unknown>;

export type Planned = ApplicationInput & {
  readonly https_state: HttpsState;
  /** Absent: people change it. */
  readonly managed_by?: string;
};
