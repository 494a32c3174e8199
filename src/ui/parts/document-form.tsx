// The form state of a singleton, such as the settings: field errors, drafts, merging; knows none by name.
import { type FormRulesRecord, useForm } from "@mantine/form";
import { useDebouncedCallback } from "@mantine/hooks";
import { useEffect, useState } from "react";
import { useChange } from "../api/changes.tsx";
import { useConnection } from "../api/connection-context.ts";
import { ApiError, toFormPath } from "../api/error.ts";
import { type Document, isSame, mergePatch } from "../api/merge-patch.ts";
import type { Versioned } from "../api/queries.ts";
import { type Conflict, ConflictPrompt, contested } from "./conflict-prompt.tsx";
import { dropDraft, loadDraft, storeDraft } from "./drafts.ts";
import { useLeaveGuard } from "./leave-guard.tsx";
import { sendUnlessLockedOut } from "./lock-out-prompt.tsx";
import type { ResourceForm } from "./resource-form.tsx";

export interface DocumentFormOptions<T extends object, V extends object> {
  /** Below /api/v1: `settings`. */
  readonly path: string;
  /** As read. */
  readonly source: Versioned<T>;
  /** Values of the form. */
  readonly toValues: (document: Partial<T>) => V;
  /** The object as written. */
  readonly toBody: (values: V) => Document;
  readonly validate?: FormRulesRecord<V, V>;
  /** Notification after saving. */
  readonly done: string;
}

/** The same as `useResourceForm`, for a singleton. */
export function useDocumentForm<T extends object, V extends object>(
  options: DocumentFormOptions<T, V>,
): ResourceForm<V> {
  const { path, source, toValues, validate } = options;
  const [draft] = useState(() => loadDraft<V>(path));
  const [isRestored, setRestored] = useState(draft !== null);
  const [origin, setOrigin] = useState(
    () => (draft?.origin as Versioned<T> | null | undefined) ?? source,
  );
  const start = toValues(origin.value);
  const keep = useDebouncedCallback((values: V) => {
    if (isSame(values, start)) dropDraft(path);
    else storeDraft(path, { values, origin });
  }, 400);
  const form = useForm<V>({
    initialValues: start,
    validateInputOnChange: true,
    ...(validate === undefined ? {} : { validate }),
    onValuesChange: keep,
  });
  // Once: useForm treats its first values as unchanged.
  useState(() => {
    if (draft !== null) form.setValues({ ...start, ...draft.values });
  });
  const reset = (document: Versioned<T>) => {
    keep.cancel();
    dropDraft(path);
    setRestored(false);
    setOrigin(document);
    const values = toValues(document.value);
    form.setInitialValues(values);
    form.setValues(values);
    form.resetDirty(values);
  };
  const saving = useSaving(options, { form, origin, onSaved: reset });
  const isDirty = form.isDirty();
  useLeaveGuard(isDirty && !saving.isSaving);
  // Changed elsewhere, and this form has no unsaved input.
  const isBehind = source.etag !== origin.etag && !isDirty && !isRestored && !saving.isSaving;
  // biome-ignore lint/correctness/useExhaustiveDependencies: it depends only on the refetched value
  useEffect(() => {
    if (isBehind) reset(source);
  }, [isBehind, source.etag]);
  return {
    form,
    isDirty,
    isRestored,
    hasSecrets: false,
    ...saving,
    discard: () => {
      saving.forget();
      reset(source);
    },
    submit: form.onSubmit(saving.submit, (errors) =>
      form.getInputNode(Object.keys(errors)[0] ?? "")?.focus(),
    ),
  };
}

interface SavingDeps<T extends object, V extends object> {
  readonly form: ResourceForm<V>["form"];
  readonly origin: Versioned<T>;
  readonly onSaved: (saved: Versioned<T>) => void;
}

function useSaving<T extends object, V extends object>(
  { path, toValues, toBody, done }: DocumentFormOptions<T, V>,
  { form, origin, onSaved }: SavingDeps<T, V>,
) {
  const [failure, setFailure] = useState<Error | null>(null);
  const [conflict, setConflict] = useState<Conflict | null>(null);
  const connection = useConnection();
  const { mutateAsync, isPending } = useChange<T, { body: Document; etag: string | null }>({
    send: ({ body, etag }) =>
      sendUnlessLockedOut((query) =>
        connection.send<T>(`/${path}`, { method: "PATCH", body, query, ifMatch: etag }),
      ),
    touches: [path],
    done: () => done,
    showsErrors: true,
  });
  const bodyOf = (document: Partial<T>) => toBody(toValues(document));

  const refuse = async (error: unknown, mine: Document): Promise<void> => {
    if (!(error instanceof ApiError)) return setFailure(error as Error);
    if (error.status === 412) {
      const latest = await connection.send<T>(`/${path}`);
      const theirs = bodyOf(latest.value);
      const found = { base: bodyOf(origin.value), mine, theirs, etag: latest.etag };
      // No field of this form changed, so there is nothing to merge.
      if (contested(found).length === 0) return save(mine, theirs, latest.etag);
      return setConflict(found);
    }
    // List inputs show the error of one item for the whole list.
    const field = toFormPath((error.field ?? "").replace(/\[\d+\]$/, ""));
    if (field === "" || form.getInputProps(field).value === undefined) return setFailure(error);
    form.setFieldError(field, error.detail);
    form.getInputNode(field)?.focus();
  };

  const save = async (mine: Document, base: Document, etag: string | null): Promise<void> => {
    setFailure(null);
    try {
      onSaved(await mutateAsync({ body: mergePatch(base, mine), etag }));
    } catch (error) {
      await refuse(error, mine).catch(setFailure);
    }
  };

  return {
    failure,
    isSaving: isPending,
    forget: () => setFailure(null),
    submit: (values: V) => void save(toBody(values), bodyOf(origin.value), origin.etag),
    prompts: (
      <ConflictPrompt
        conflict={conflict}
        onCancel={() => setConflict(null)}
        onMerged={(merged, { theirs, etag }) => {
          setConflict(null);
          form.setValues(toValues(merged as Partial<T>));
          void save(merged, theirs, etag);
        }}
      />
    ),
  };
}
