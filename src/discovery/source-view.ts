// A source of discovery as the management API shows it; knows no source.
import type { SiteState } from "./managed-source.ts";

/** A source as the management API shows it. */
export interface SourceView {
  /** The mark of its objects: `docker`, `files`. */
  readonly name: string;
  readonly state: "off" | "connecting" | "connected" | "failed";
  /** Why it failed, a sentence; null: it did not. */
  readonly problem: string | null;
  /** RFC 3339: when it last looked; null: never. */
  readonly looked_at: string | null;
  /** Containers, or files. */
  readonly found: number;
  readonly sites: readonly SiteState[];
}
