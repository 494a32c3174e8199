// Schema form fields with one value: strings, switches, lists of words, JSON; knows no plugin.
import { Switch, TagsInput, Textarea, TextInput } from "@mantine/core";
import { useState } from "react";
import {
  emptyOf,
  placeholderOf,
  type FieldInputProps,
  useFormFacts,
  useTexts,
} from "./field-frame.tsx";
import { shapeOf } from "./shape.ts";

const asText = (value: unknown): string =>
  typeof value === "string" || typeof value === "number" ? String(value) : "";

export function TextField({ info, value, onChange }: FieldInputProps) {
  const texts = useTexts(info);
  return (
    <TextInput
      {...texts}
      placeholder={placeholderOf(info)}
      autoComplete="off"
      value={asText(value)}
      onChange={({ currentTarget: { value: next } }) =>
        onChange(next === "" ? emptyOf(info.schema) : next)
      }
    />
  );
}

export function LongField({ info, value, onChange }: FieldInputProps) {
  const texts = useTexts(info);
  const isProse = info.schema.form?.input === "long";
  return (
    <Textarea
      {...texts}
      autosize
      minRows={info.isNeeded ? 10 : isProse ? 1 : 3}
      maxRows={30}
      spellCheck={isProse}
      placeholder={placeholderOf(info)}
      styles={isProse ? {} : MONO}
      value={asText(value)}
      onChange={({ currentTarget: { value: next } }) =>
        onChange(next === "" ? emptyOf(info.schema) : next)
      }
    />
  );
}

const MONO = { input: { fontFamily: "var(--mantine-font-family-monospace)", fontSize: 13 } };

export function FlagField({ info, value, onChange }: FieldInputProps) {
  const { withAsterisk: _, ...texts } = useTexts(info);
  const { schema } = info;
  const isOn = [true, "on"].includes((value ?? schema.default) as boolean | string);
  return (
    <Switch
      {...texts}
      checked={isOn}
      onChange={({ currentTarget: { checked } }) =>
        onChange(schema.enum === undefined ? checked : checked ? "on" : "off")
      }
    />
  );
}

/** Strings that may contain commas. */
const KEEPS_COMMAS = new Set(["regex", "text_or_regex", "template", "header_value"]);

export function WordsField({ info, value, onChange }: FieldInputProps) {
  const { error, ...texts } = useTexts(info, true);
  const { errors } = useFormFacts();
  const { schema, isNullable } = shapeOf(info.schema);
  const items = schema.items ?? {};
  const isNumber = items.type === "integer";
  const initial = Array.isArray(schema.default) ? (schema.default as unknown[]) : [];
  const words = Array.isArray(value) ? value : [];
  const isDefault = value === undefined && initial.length > 0;
  const wrong = words.findIndex((_, index) => errors[`${info.path}.${index}`] !== undefined);
  const ofWord = `${String(words[wrong])} ${errors[`${info.path}.${wrong}`] ?? ""}`;
  const take = (next: readonly string[]) => {
    if (next.length === 0 && schema.default === undefined) return onChange(emptyOf(info.schema));
    if (next.length === 0 && isNullable) return onChange(null);
    onChange(isNumber ? next.map(toNumber) : [...next]);
  };
  return (
    <TagsInput
      {...texts}
      error={wrong === -1 ? error : ofWord}
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
