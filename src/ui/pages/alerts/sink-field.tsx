// The destination of an alert: a preset for well-known services above the settings of its type; knows no events.
import { Select, Stack } from "@mantine/core";
import { isDocument } from "../../api/merge-patch.ts";
import { type FieldInputProps, useFormFacts } from "../../parts/schema/field-frame.tsx";
import { PageObject } from "../../parts/schema/page-fields.tsx";
import { presetOf, webhookPresets } from "./webhook-presets.ts";

/** The input of `config`. */
export function SinkField(props: FieldInputProps) {
  const isWebhook = props.info.schema.properties?.["template"] !== undefined;
  return (
    <Stack>
      {isWebhook && <PresetField {...props} />}
      <PageObject {...props} />
    </Stack>
  );
}

function PresetField({ value, onChange }: FieldInputProps) {
  const { isReadOnly } = useFormFacts();
  const config = isDocument(value) ? value : {};
  const preset = presetOf(config);
  const choose = (next: string | null) => {
    const chosen = webhookPresets.find((one) => one.value === next);
    if (chosen === undefined) return;
    const { template, content_type } = chosen;
    const { template: _, ...others } = config;
    onChange({ ...others, content_type, ...(template === "" ? {} : { template }) });
  };
  const presets = webhookPresets.map((one) => ({ value: one.value, label: one.label }));
  return (
    <Select
      label="Preset"
      description={preset?.help ?? "Define the body below, under Advanced."}
      data={preset === null ? [...presets, { value: "custom", label: "Custom body" }] : presets}
      value={preset?.value ?? "custom"}
      onChange={choose}
      disabled={isReadOnly}
      allowDeselect={false}
    />
  );
}
