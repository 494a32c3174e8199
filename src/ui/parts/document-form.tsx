// The form state of a singleton, such as the settings; knows none by name.
import { useEffect } from "react";
import { useChange } from "../api/changes.tsx";
import { useConnection } from "../api/connection-context.ts";
import type { Document } from "../api/merge-patch.ts";
import type { Versioned } from "../api/queries.ts";
import { sendUnlessLockedOut } from "./lock-out-prompt.tsx";
import { type FormOptions, type ResourceForm, useFormState } from "./resource-form.tsx";

export interface DocumentFormOptions<T extends object, V extends object> extends FormOptions<T, V> {
  /** Below /api/v1: `settings`. */
  readonly path: string;
  /** As read. */
  readonly source: Versioned<T>;
  /** Notification after saving. */
  readonly done: (document: T) => string;
  readonly onSaved?: (document: T) => void;
}

/** The same as `useResourceForm`, for a singleton. */
export function useDocumentForm<T extends object, V extends object>(
  options: DocumentFormOptions<T, V>,
): ResourceForm<V> {
  const { path, source, done, onSaved } = options;
  const connection = useConnection();
  const { mutateAsync, isPending } = useChange<T, { body: Document; etag: string | null }>({
    send: ({ body, etag }) =>
      sendUnlessLockedOut((query) =>
        connection.send<T>(`/${path}`, { method: "PATCH", body, query, ifMatch: etag }),
      ),
    touches: [path],
    done,
    showsErrors: true,
  });
  const { origin, reset, ...state } = useFormState<T, V>(options, {
    key: path,
    isSaving: isPending,
    read: () => connection.send<T>(`/${path}`),
    send: (body, _, etag) => mutateAsync({ body, etag }),
    onSaved: (document) => onSaved?.(document),
  });
  const { isDirty, isRestored } = state;
  // Changed elsewhere, and this form has no unsaved input.
  const isBehind = source.etag !== origin?.etag && !isDirty && !isRestored && !isPending;
  // biome-ignore lint/correctness/useExhaustiveDependencies: it depends only on the refetched value
  useEffect(() => {
    if (isBehind) reset(source);
  }, [isBehind, source.etag]);
  return state;
}
