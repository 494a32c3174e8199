// Unsaved input, stored in the tab so that it survives a reload or the end of a session; knows no form.

export interface Draft<V> {
  readonly values: V;
  /** The version that the form was opened with, to detect concurrent changes. */
  readonly origin: unknown;
}

const PREFIX = "sluice.draft:";

/** Storage may be full or forbidden: then there is no draft. */
export function storeDraft<V>(key: string, draft: Draft<V>): void {
  try {
    sessionStorage.setItem(PREFIX + key, JSON.stringify(draft));
  } catch {
    dropDraft(key);
  }
}

export function loadDraft<V>(key: string): Draft<V> | null {
  try {
    const text = sessionStorage.getItem(PREFIX + key);
    return text === null ? null : (JSON.parse(text) as Draft<V>);
  } catch {
    return null;
  }
}

export const dropDraft = (key: string): void => sessionStorage.removeItem(PREFIX + key);
