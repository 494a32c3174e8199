// Schema form fields to choose from the values that a schema names; knows no plugin.
import {
  Checkbox,
  Input,
  MultiSelect,
  Radio,
  SegmentedControl,
  Select,
  Stack,
  Text,
  TextInput,
} from "@mantine/core";
import { emptyOf, type FieldInputProps, useTexts } from "./field-frame.tsx";
import { type JsonSchema, meaningsOf, optionsOf, shapeOf } from "./shape.ts";
import { optionOf } from "./values.ts";

/** More or longer options do not fit in one row on a phone. */
const MAX_SEGMENTS = 3;

export function ChoiceField(props: FieldInputProps) {
  const { options, other, input } = props.info.schema.form ?? {};
  if (options === undefined) return <WordField {...props} />;
  if (input === "radios") return <RadiosField {...props} options={options} />;
  return <OptionsField {...props} options={options} other={other} />;
}

interface OptionsProps extends FieldInputProps {
  readonly options: Readonly<Record<string, string>>;
}

/** Labeled values, and other texts where the schema has a label for them. */
function OptionsField({
  info,
  value,
  onChange,
  options,
  other,
}: OptionsProps & { readonly other: string | undefined }) {
  const texts = useTexts(info);
  const chosen = optionOf(value ?? info.schema.default);
  const isOther = other !== undefined && !Object.hasOwn(options, chosen);
  const data = Object.entries(options).map(([key, label]) => ({ value: key, label }));
  const unknown = isOther || Object.hasOwn(options, chosen) ? [] : [chosen];
  const choose = (key: string | null) => {
    if (key === OTHER) onChange("");
    else if (key !== null) onChange(valueOfOption(info.schema, key));
  };
  return (
    <Stack gap="sm">
      <Select
        {...texts}
        error={isOther ? null : texts.error}
        data={[
          ...data,
          ...unknown,
          ...(other === undefined ? [] : [{ value: OTHER, label: "Custom" }]),
        ]}
        value={isOther ? OTHER : chosen}
        onChange={choose}
        allowDeselect={false}
        searchable={data.length > 8}
      />
      {isOther && (
        <TextInput
          label={other}
          withAsterisk
          error={texts.error}
          disabled={texts.disabled}
          placeholder={info.schema.form?.example ?? ""}
          value={typeof value === "string" ? value : ""}
          onChange={({ currentTarget }) => onChange(currentTarget.value)}
        />
      )}
    </Stack>
  );
}

const OTHER = "\u0000other";

/** The value of an option. */
function valueOfOption(schema: JsonSchema, key: string): unknown {
  const isText = optionsOf(schema).some(({ type }) => type === "string");
  return isText && key !== "null" ? key : (JSON.parse(key) as unknown);
}

/** Each option with its meaning. */
function RadiosField({ info, value, onChange, options }: OptionsProps) {
  const texts = useTexts(info);
  return (
    <Radio.Group {...texts} value={optionOf(value ?? info.schema.default)} onChange={onChange}>
      <Stack gap="xs" mt={6}>
        {Object.entries(options).map(([key, text]) => (
          <Radio key={key} value={key} label={key} description={text} disabled={texts.disabled} />
        ))}
      </Stack>
    </Radio.Group>
  );
}

function WordField({ info, value, onChange }: FieldInputProps) {
  const texts = useTexts(info);
  const { schema, isNullable } = shapeOf(info.schema);
  const words = schema.enum ?? [];
  const chosen = value ?? schema.default ?? null;
  const meanings = meaningsOf(schema);
  const isShort = words.length <= MAX_SEGMENTS && words.join("").length < 30;
  const take = (next: string | null) =>
    onChange(next === null ? emptyOf(info.schema) : words.find((word) => String(word) === next));
  const data = words.map((word) => ({
    value: String(word),
    label: typeof word === "number" ? String(word) : toWords(word),
  }));
  const meaning = chosen === null ? undefined : meanings?.get(String(chosen));
  const description = meaning ?? texts.description;
  if (isShort && !isNullable && chosen !== null)
    return (
      <Input.Wrapper {...texts} description={description} labelElement="div">
        <SegmentedControl
          mt={4}
          style={{ display: "flex", width: "fit-content", maxWidth: "100%" }}
          aria-label={info.label}
          data={data}
          value={String(chosen)}
          onChange={take}
          disabled={texts.disabled}
        />
      </Input.Wrapper>
    );
  return (
    <Select
      {...texts}
      description={description}
      data={data}
      value={chosen === null ? null : String(chosen)}
      onChange={take}
      clearable={isNullable}
      allowDeselect={false}
      placeholder="Choose"
      maxDropdownHeight={320}
      renderOption={({ option }) => (
        <div>
          <Text size="sm">{option.label}</Text>
          {meanings?.get(option.value) !== undefined && (
            <Text size="xs" c="dimmed">
              {meanings.get(option.value)}
            </Text>
          )}
        </div>
      )}
    />
  );
}

/** Terms of a protocol, such as methods and algorithms, stay unchanged. */
const toWords = (word: string): string =>
  /^[a-z]+(?:_[a-z]+)+$/.test(word) ? word.replaceAll("_", " ") : word;

export function ChoicesField({ info, value, onChange }: FieldInputProps) {
  const texts = useTexts(info, true);
  const { schema, isNullable } = shapeOf(info.schema);
  const { enum: words = [], form } = shapeOf(schema.items ?? {}).schema;
  const { options = {} } = form ?? {};
  const initial = Array.isArray(schema.default) ? (schema.default as unknown[]) : [];
  const chosen = (Array.isArray(value) ? value : value === undefined ? initial : []).map(String);
  const take = (next: readonly string[]) => {
    if (next.length === 0 && (isNullable || schema.default === undefined))
      return onChange(emptyOf(info.schema));
    onChange(next.map((text) => words.find((word) => String(word) === text)));
  };
  if (schema.form?.input === "checks")
    return (
      <Checkbox.Group {...texts} value={chosen} onChange={take}>
        <Stack gap="xs" mt={4}>
          {words.map(String).map((word) => {
            const [label = "", ...help] = (options[word] ?? toWords(word)).split(": ");
            return (
              <Checkbox
                key={word}
                value={word}
                label={label}
                description={help.join(": ")}
                disabled={texts.disabled}
              />
            );
          })}
        </Stack>
      </Checkbox.Group>
    );
  return (
    <MultiSelect
      {...texts}
      data={[...new Set([...words.map(String), ...chosen])].map((word) => ({
        value: word,
        label: options[word] ?? word,
      }))}
      value={chosen}
      onChange={take}
      clearable
      searchable={words.length > 6}
      placeholder={chosen.length === 0 ? "Choose" : ""}
    />
  );
}
