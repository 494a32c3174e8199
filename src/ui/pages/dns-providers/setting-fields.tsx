// Inputs for the settings of a DNS provider type, from its schema; secrets are write-only.
import {
  NumberInput,
  PasswordInput,
  type PasswordInputProps,
  Select,
  SimpleGrid,
  TextInput,
} from "@mantine/core";
import type { UseFormReturnType } from "@mantine/form";
import { ListField } from "../../parts/fields.tsx";
import { descriptionOf } from "../../parts/schema/shape.ts";
import {
  labelOf,
  type ProviderType,
  type ProviderValues,
  type SettingSchema,
  settingProblem,
} from "./provider-values.ts";

export interface ProviderFieldsProps {
  readonly form: UseFormReturnType<ProviderValues>;
}

interface Props extends ProviderFieldsProps {
  readonly type: ProviderType;
  /** Whether secrets are stored. */
  readonly isStored: boolean;
}

export function SettingFields({ form, type, isStored }: Props) {
  const { properties, required = [] } = type.schema;
  return (
    <SimpleGrid cols={{ base: 1, sm: 2 }}>
      {Object.entries(properties).map(([name, schema]) => (
        <SettingField
          key={`${type.type} ${name}`}
          form={form}
          name={name}
          schema={schema}
          isStored={isStored}
          isRequired={required.includes(name) && schema.default === undefined}
        />
      ))}
    </SimpleGrid>
  );
}

interface FieldProps extends ProviderFieldsProps {
  readonly name: string;
  readonly schema: SettingSchema;
  readonly isStored: boolean;
  readonly isRequired: boolean;
}

function SettingField({ form, name, schema, isStored, isRequired }: FieldProps) {
  const path = schema.writeOnly === true ? `secrets.${name}` : `config.${name}`;
  const value = form.values.config[name];
  const props = {
    label: labelOf(name),
    description: descriptionOf(schema) || undefined,
    required: isRequired && !(isStored && schema.writeOnly === true),
    error: form.errors[path] ?? settingProblem(schema, value),
  };
  const set = (next: unknown) => {
    form.clearFieldError(path);
    form.setFieldValue("config", { ...form.values.config, [name]: next });
  };
  if (schema.writeOnly === true)
    return <SecretField {...props} form={form} name={name} isStored={isStored} />;
  if (schema.enum !== undefined)
    return (
      <Select
        {...props}
        data={[...schema.enum]}
        value={String(value ?? schema.default ?? "")}
        allowDeselect={false}
        onChange={(next) => set(next ?? undefined)}
      />
    );
  if (schema.type === "integer")
    return (
      <NumberInput
        {...props}
        {...(schema.minimum === undefined ? {} : { min: schema.minimum })}
        {...(schema.maximum === undefined ? {} : { max: schema.maximum })}
        allowDecimal={false}
        placeholder={String(schema.default ?? "")}
        value={typeof value === "number" ? value : ""}
        onChange={(next) => set(next === "" ? undefined : Number(next))}
      />
    );
  if (schema.type === "array")
    return <ListField {...props} value={(value ?? []) as string[]} onChange={set} />;
  return (
    <TextInput
      {...props}
      spellCheck={false}
      autoComplete="off"
      placeholder={String(schema.default ?? "")}
      value={typeof value === "string" ? value : ""}
      onChange={(event) => set(event.currentTarget.value)}
    />
  );
}

interface SecretProps extends ProviderFieldsProps, Omit<PasswordInputProps, "form" | "name"> {
  readonly name: string;
  readonly isStored: boolean;
}

/** Write-only. */
function SecretField({ form, name, isStored, ...rest }: SecretProps) {
  return (
    <PasswordInput
      {...rest}
      autoComplete="off"
      placeholder={isStored ? "Stored; empty: unchanged" : ""}
      value={form.values.secrets[name] ?? ""}
      onChange={(event) => {
        const { value } = event.currentTarget;
        form.clearFieldError(`secrets.${name}`);
        form.setFieldValue("secrets", { ...form.values.secrets, [name]: value });
      }}
    />
  );
}
