// Keeps what is typed about single sign-on, saves what differs, and merges with others; draws no field.
import { useForm } from "@mantine/form";
import { type ReactNode, useState } from "react";
import { useChange } from "../../api/changes.tsx";
import { useConnection } from "../../api/connection-context.ts";
import { ApiError, toFormPath } from "../../api/error.ts";
import { type Document, mergePatch } from "../../api/merge-patch.ts";
import type { Versioned } from "../../api/queries.ts";
import { type Conflict, ConflictPrompt } from "../../parts/conflict-prompt.tsx";
import { useLeaveGuard } from "../../parts/leave-guard.tsx";
import { rules, secretOf, type Sso, type SsoValues, toBody, toValues } from "./sso-values.ts";

interface Sending {
  readonly values: SsoValues;
  readonly base: Document;
  readonly etag: string | null;
}

export function useSsoForm(source: Versioned<Sso>) {
  const connection = useConnection();
  const [origin, setOrigin] = useState(source);
  const [failure, setFailure] = useState<Error | null>(null);
  const [conflict, setConflict] = useState<Conflict | null>(null);
  const form = useForm<SsoValues>({
    initialValues: toValues(source.value),
    validateInputOnChange: true,
    validate: rules,
  });
  const { mutateAsync, isPending } = useChange<Sso, Sending>({
    send: ({ values, base, etag }) => {
      const body = { ...mergePatch(base, toBody(values)), ...secretOf(values) };
      return connection.send("/sso", { method: "PATCH", body, ifMatch: etag });
    },
    touches: ["sso"],
    done: ({ enabled }) => (enabled ? "Saved. Single sign-on is on" : "Saved"),
    showsErrors: true,
  });
  useLeaveGuard(form.isDirty() && !isPending);

  const refuse = async (error: unknown, values: SsoValues) => {
    if (!(error instanceof ApiError)) return setFailure(error as Error);
    if (error.status === 412) {
      const latest = await connection.send<Sso>("/sso");
      const [base, theirs] = [origin.value, latest.value].map((sso) => toBody(toValues(sso)));
      return setConflict({
        ...{ base: base as Document, theirs: theirs as Document, etag: latest.etag },
        mine: toBody(values),
      });
    }
    const [name = ""] = toFormPath(error.field ?? "").split(".");
    if (!(name in values)) return setFailure(error);
    form.setFieldError(name, error.detail);
    form.getInputNode(name)?.focus();
  };
  /** Whether it went well. */
  const save = async (sending: Sending): Promise<boolean> => {
    setFailure(null);
    try {
      const { value, etag } = await mutateAsync(sending);
      setOrigin({ value, etag });
      const stored = toValues(value);
      form.setInitialValues(stored);
      form.setValues(stored);
      form.resetDirty(stored);
      return true;
    } catch (error) {
      await refuse(error, sending.values).catch(setFailure);
      return false;
    }
  };
  const prompts: ReactNode = (
    <ConflictPrompt
      conflict={conflict}
      onCancel={() => setConflict(null)}
      onMerged={(merged, { theirs, etag }) => {
        setConflict(null);
        const values = { ...form.getValues(), ...merged } as SsoValues;
        const next = { ...values, default_role: values.default_role ?? "" };
        form.setValues(next);
        void save({ values: next, base: theirs, etag });
      }}
    />
  );
  return {
    ...{ form, failure, prompts, isSaving: isPending, isDirty: form.isDirty() },
    save: async (): Promise<boolean> => {
      if (form.validate().hasErrors) return false;
      const base = toBody(toValues(origin.value));
      return await save({ values: form.getValues(), base, etag: origin.etag });
    },
  };
}
