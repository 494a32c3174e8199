// Schema form fields with one value: strings, numbers, switches, choices, lists of words, JSON; knows no plugin.
import {
  Input,
  MultiSelect,
  NumberInput,
  SegmentedControl,
  Select,
  Switch,
  TagsInput,
  Text,
  Textarea,
  TextInput,
} from "@mantine/core";
import { useState } from "react";
import { inWords } from "../fields.tsx";
import { placeholderOf, type FieldInputProps, useFormFacts, useTexts } from "./field-frame.tsx";
import { type JsonSchema, meaningsOf, shapeOf, type Unit, unitOf } from "./shape.ts";

/** The value of an empty input. */
const emptyOf = (schema: JsonSchema): null | undefined =>
  shapeOf(schema).isNullable ? null : undefined;

const asText = (value: unknown): string =>
  typeof value === "string" || typeof value === "number" ? String(value) : "";

export function TextField({ info, value, onChange }: FieldInputProps) {
  const texts = useTexts(info);
  return (
    <TextInput
      {...texts}
      placeholder={placeholderOf(info)}
      value={asText(value)}
      onChange={({ currentTarget: { value: next } }) =>
        onChange(next === "" ? emptyOf(info.schema) : next)
      }
    />
  );
}

export function LongField({ info, value, onChange }: FieldInputProps) {
  const texts = useTexts(info);
  return (
    <Textarea
      {...texts}
      autosize
      minRows={info.isNeeded ? 10 : 3}
      maxRows={30}
      spellCheck={false}
      placeholder={placeholderOf(info)}
      styles={MONO}
      value={asText(value)}
      onChange={({ currentTarget: { value: next } }) =>
        onChange(next === "" ? emptyOf(info.schema) : next)
      }
    />
  );
}

const MONO = { input: { fontFamily: "var(--mantine-font-family-monospace)", fontSize: 13 } };

export function NumberField({ info, value, onChange }: FieldInputProps) {
  const { description, ...texts } = useTexts(info);
  const { schema } = shapeOf(info.schema);
  const unit = unitOf(info.name, schema);
  const initial = schema.default;
  const shown = typeof value === "number" ? value : initial;
  const spoken = unit !== null && typeof shown === "number" ? spell(shown, unit) : "";
  return (
    <NumberInput
      {...texts}
      description={
        <>
          {description}
          {spoken !== "" && ` (${spoken})`}
        </>
      }
      maw={360}
      // An invalid number stays with an error, instead of becoming another number.
      clampBehavior="none"
      allowDecimal={schema.type === "number"}
      placeholder={withUnit(placeholderOf({ ...info, schema }), unit)}
      hideControls={unit !== null}
      suffix={unit === null ? "" : ` ${unit}`}
      value={typeof value === "number" ? value : ""}
      onChange={(next) => onChange(next === "" ? emptyOf(info.schema) : Number(next))}
    />
  );
}

const withUnit = (placeholder: string, unit: Unit | null): string =>
  unit === null || placeholder === "" ? placeholder : `${placeholder} ${unit}`;

function spell(value: number, unit: Unit): string {
  if (unit !== "B") return inWords(value, unit);
  const step = [
    [2 ** 30, "GiB"],
    [2 ** 20, "MiB"],
    [2 ** 10, "KiB"],
  ].find(([size]) => value >= Number(size));
  return step === undefined ? "" : `${Math.round((value / Number(step[0])) * 10) / 10} ${step[1]}`;
}

export function FlagField({ info, value, onChange }: FieldInputProps) {
  const { withAsterisk: _, ...texts } = useTexts(info);
  const isOn = typeof value === "boolean" ? value : info.schema.default === true;
  return (
    <Switch
      {...texts}
      checked={isOn}
      onChange={({ currentTarget: { checked } }) => onChange(checked)}
    />
  );
}

/** More or longer options do not fit in one row on a phone. */
const MAX_SEGMENTS = 3;

export function ChoiceField({ info, value, onChange }: FieldInputProps) {
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

/** Strings that may contain commas. */
const KEEPS_COMMAS = new Set(["regex", "text_or_regex", "template", "header_value"]);

export function WordsField({ info, value, onChange }: FieldInputProps) {
  const texts = useTexts(info, true);
  const { schema, isNullable } = shapeOf(info.schema);
  const items = schema.items ?? {};
  const isNumber = items.type === "integer";
  const initial = Array.isArray(schema.default) ? (schema.default as unknown[]) : [];
  const words = Array.isArray(value) ? value : [];
  const isDefault = value === undefined && initial.length > 0;
  const take = (next: readonly string[]) => {
    if (next.length === 0 && schema.default === undefined) return onChange(emptyOf(info.schema));
    if (next.length === 0 && isNullable) return onChange(null);
    onChange(isNumber ? next.map(toNumber) : [...next]);
  };
  return (
    <TagsInput
      {...texts}
      value={(isDefault ? initial : words).map(String)}
      onChange={take}
      splitChars={KEEPS_COMMAS.has(items["x-kind"] ?? "") ? [] : [","]}
      acceptValueOnBlur
      clearable
      placeholder={words.length === 0 && !isDefault ? placeholderOf(info) : ""}
    />
  );
}

const toNumber = (text: string): number | string => (/^-?\d+$/.test(text) ? Number(text) : text);

export function ChoicesField({ info, value, onChange }: FieldInputProps) {
  const texts = useTexts(info, true);
  const { schema, isNullable } = shapeOf(info.schema);
  const words = shapeOf(schema.items ?? {}).schema.enum ?? [];
  const initial = Array.isArray(schema.default) ? (schema.default as unknown[]) : [];
  const chosen = (Array.isArray(value) ? value : value === undefined ? initial : []).map(String);
  const take = (next: readonly string[]) => {
    if (next.length === 0 && (isNullable || schema.default === undefined))
      return onChange(emptyOf(info.schema));
    onChange(next.map((text) => words.find((word) => String(word) === text)));
  };
  return (
    <MultiSelect
      {...texts}
      data={[...new Set([...words.map(String), ...chosen])]}
      value={chosen}
      onChange={take}
      clearable
      searchable={words.length > 6}
      placeholder={chosen.length === 0 ? "Choose" : ""}
    />
  );
}

/** One string, or several as a list. */
export function WordOrWordsField({ info, value, onChange }: FieldInputProps) {
  const texts = useTexts(info, true);
  const initial = info.schema.default;
  const shown = value ?? initial ?? [];
  const words = (Array.isArray(shown) ? shown : [shown]).map(String);
  const take = (next: readonly string[]) =>
    onChange(next.length === 0 ? emptyOf(info.schema) : next.length === 1 ? next[0] : [...next]);
  return <TagsInput {...texts} value={words} onChange={take} acceptValueOnBlur clearable />;
}

/** Anything, as JSON. */
export function JsonField({ info, value, onChange }: FieldInputProps) {
  const texts = useTexts(info, true);
  const { isReadOnly } = useFormFacts();
  const written = value === undefined || value === null ? "" : JSON.stringify(value, null, 2);
  const [draft, setDraft] = useState<{ readonly of: string; readonly text: string } | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  // The value changed from outside.
  const text = draft !== null && draft.of === written ? draft.text : written;
  const take = (next: string) => {
    const parsed = next.trim() === "" ? { value: emptyOf(info.schema) } : parse(next);
    setProblem(parsed === null ? "not valid JSON" : null);
    if (parsed === null) return setDraft({ of: written, text: next });
    const { value: read } = parsed;
    const after = read === undefined || read === null ? "" : JSON.stringify(read, null, 2);
    setDraft({ of: after, text: next });
    onChange(read);
  };
  return (
    <Textarea
      {...texts}
      error={draft !== null && draft.of === written && problem !== null ? problem : texts.error}
      autosize
      minRows={2}
      maxRows={24}
      spellCheck={false}
      readOnly={isReadOnly}
      placeholder={info.example === undefined ? "{ }" : JSON.stringify(info.example).slice(0, 120)}
      styles={MONO}
      value={text}
      onChange={({ currentTarget: { value: next } }) => take(next)}
    />
  );
}

function parse(text: string): { readonly value: unknown } | null {
  try {
    return { value: JSON.parse(text) as unknown };
  } catch {
    return null;
  }
}
