// The error of a rejected file: field, line, and the lines around it.
import { Alert, Code, Group, Stack, Text } from "@mantine/core";
import { ApiError, toMessage } from "../../api/error.ts";
import { lineOf } from "./import-source.ts";

interface Props {
  readonly error: unknown;
  /** The sent text; null: binary. */
  readonly text: string | null;
}

const AROUND = 2;

export function ImportError({ error, text }: Props) {
  const message = toMessage(error);
  const line = lineOf(message);
  const field = error instanceof ApiError ? error.field : null;
  const detail = error instanceof ApiError ? error.detail : message;
  const id = error instanceof ApiError && error.status >= 500 ? error.requestId : null;
  return (
    <Alert color="red" title="The import failed. Nothing has changed." role="alert">
      <Stack gap="xs">
        <Text size="sm" style={{ overflowWrap: "anywhere" }}>
          {detail.replace(/ \(line \d+(?:, column \d+)?\)$/, "")}
        </Text>
        {(field !== null || line !== null) && (
          <Group gap="md">
            {field !== null && (
              <Text size="sm">
                Field <Code>{field}</Code>
              </Text>
            )}
            {line !== null && (
              <Text size="sm">
                Line <Code>{line}</Code>
              </Text>
            )}
          </Group>
        )}
        {line !== null && text !== null && <Excerpt text={text} line={line} />}
        {id !== null && <Text size="xs">Request {id}</Text>}
      </Stack>
    </Alert>
  );
}

function Excerpt({ text, line }: { readonly text: string; readonly line: number }) {
  const shown = text
    .split("\n")
    .map((content, index) => ({ number: index + 1, content: content.slice(0, 400) }))
    .slice(Math.max(0, line - AROUND - 1), line + AROUND);
  return (
    <div className="excerpt mono">
      {shown.map(({ number, content }) => (
        <div key={number} className={number === line ? "excerpt-line is-wrong" : "excerpt-line"}>
          <span className="excerpt-number">{number}</span>
          <span>{content}</span>
        </div>
      ))}
    </div>
  );
}
