// A small form for one target of a stored service; knows nothing of health.
import { Stack, Textarea } from "@mantine/core";
import { useForm } from "@mantine/form";
import { useState } from "react";
import { useChange } from "../../api/changes.tsx";
import { useConnection } from "../../api/connection-context.ts";
import { ApiError, toFormPath } from "../../api/error.ts";
import type { Schemas } from "../../api/resources.ts";
import { HostPortField, TagsField } from "../../parts/fields.tsx";
import { FormDrawer } from "../../parts/form-page.tsx";
import { serverOf } from "../../parts/lenient-url.ts";
import { NumberField } from "../../parts/number-field.tsx";
import type { Target } from "./live-targets.tsx";
import { hostProblem } from "./service-values.ts";
import { addressOf } from "./target-weight.ts";

/** What the drawer is about; null as target: a new one. */
export interface DrawerTarget {
  readonly target: Target | null;
}

interface Props {
  readonly serviceId: string;
  /** Null: the drawer is closed. */
  readonly edited: DrawerTarget | null;
  readonly onClose: () => void;
}

export function TargetDrawer({ serviceId, edited, onClose }: Props) {
  // The content stays until the drawer has slid out.
  const [shown, setShown] = useState(edited);
  if (edited !== null && edited !== shown) setShown(edited);
  if (shown === null) return null;
  return (
    <TargetForm
      key={shown.target?.id ?? "new"}
      serviceId={serviceId}
      target={shown.target}
      isOpen={edited !== null}
      onClose={() => {
        setShown(null);
        onClose();
      }}
    />
  );
}

interface FormProps {
  readonly serviceId: string;
  readonly target: Target | null;
  readonly isOpen: boolean;
  readonly onClose: () => void;
}

const start = { host: "", port: null, weight: 100, priority: 0, tags: [], description: "" };

type Values = Pick<
  Schemas["Target"],
  "host" | "port" | "weight" | "priority" | "tags" | "description"
>;

const valuesOf = ({ host, port, weight, priority, tags, description }: Target): Values => ({
  host,
  port,
  weight,
  priority,
  tags,
  description,
});

function TargetForm({ serviceId, target, isOpen, onClose }: FormProps) {
  const connection = useConnection();
  const form = useForm<Values>({
    initialValues: target === null ? start : valuesOf(target),
    validateInputOnChange: true,
    validate: { host: (value) => (value === "" ? "Host is required" : hostProblem(value)) },
  });
  const { mutateAsync, isPending, error, reset } = useChange<Target, Values>({
    send: (body) =>
      target === null
        ? connection.send(`/services/${serviceId}/targets`, { method: "POST", body })
        : connection.send(`/targets/${target.id}`, { method: "PATCH", body }),
    touches: ["targets", `services/${serviceId}/health`],
    done: (saved) => `Target ${addressOf(saved)} ${target === null ? "added" : "saved"}`,
    showsErrors: true,
  });
  const submit = form.onSubmit(async (values) => {
    try {
      await mutateAsync(values);
      onClose();
    } catch (failure) {
      const field = failure instanceof ApiError ? toFormPath(failure.field ?? "") : "";
      if (!(field in values) || !(failure instanceof ApiError)) return;
      form.setFieldError(field, failure.detail);
      reset();
    }
  });
  const setHost = (text: string) => {
    const { host, port } = serverOf(text, form.values.host);
    form.setFieldValue("host", host);
    if (port !== null) form.setFieldValue("port", port);
  };
  return (
    <FormDrawer
      opened={isOpen}
      onClose={onClose}
      title={target === null ? "New target" : `Target ${addressOf(target)}`}
      onSubmit={submit}
      isSaving={isPending}
      failure={error}
      label={target === null ? "Add" : "Save"}
    >
      <Stack>
        <HostPortField
          label="Host"
          host={{ ...form.getInputProps("host"), onChange: setHost }}
          port={form.getInputProps("port")}
        />
        <NumberField
          label="Weight"
          description="Share of the traffic relative to the other targets. 0: no new requests"
          max={65_535}
          empty={0}
          {...form.getInputProps("weight")}
        />
        <NumberField
          label="Tier"
          description="The lowest number is used first; higher tiers only while every lower tier is unhealthy"
          max={100}
          empty={0}
          {...form.getInputProps("priority")}
        />
        <TagsField label="Tags" {...form.getInputProps("tags")} />
        <Textarea label="Description" autosize {...form.getInputProps("description")} />
      </Stack>
    </FormDrawer>
  );
}
