// A JSON input that reports syntax errors while typing; knows no schema.
import { Textarea } from "@mantine/core";
import { useState } from "react";
import type { FieldProps } from "./fields.tsx";

interface Props extends FieldProps<unknown> {
  readonly minRows?: number;
  /** Receives whether the text is valid JSON, so that a form can block saving. */
  readonly onValid?: (isValid: boolean) => void;
}

/** Calls `onChange` with the parsed value, only while the text is JSON. */
export function CodeField({ value, onChange, onValid, error, minRows = 8, ...rest }: Props) {
  const [text, setText] = useState(() => JSON.stringify(value, null, 2));
  const [problem, setProblem] = useState<string | null>(null);
  const [shown, setShown] = useState(value);
  // The value changed from outside.
  if (shown !== value) {
    setShown(value);
    setText(JSON.stringify(value, null, 2));
    setProblem(null);
  }
  const change = (next: string) => {
    setText(next);
    const parsed = parse(next);
    setProblem(parsed.problem);
    onValid?.(parsed.problem === null);
    if (parsed.problem !== null) return;
    setShown(parsed.value);
    onChange?.(parsed.value);
  };
  return (
    <Textarea
      autosize
      minRows={minRows}
      maxRows={40}
      spellCheck={false}
      value={text}
      onChange={(event) => change(event.currentTarget.value)}
      error={problem ?? error}
      styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)", fontSize: 13 } }}
      {...rest}
    />
  );
}

function parse(text: string): { readonly value?: unknown; readonly problem: string | null } {
  try {
    return { value: JSON.parse(text) as unknown, problem: null };
  } catch (error) {
    const message = error instanceof Error ? error.message : "not valid JSON";
    const position = /position (\d+)/.exec(message)?.[1];
    const line = position === undefined ? null : text.slice(0, Number(position)).split("\n").length;
    const short = message.replace(/ in JSON.*| \(line.*/s, "");
    return { problem: line === null ? short : `Line ${line}: ${short}` };
  }
}
