// User-Agent names of crawlers for language models; a list, no logic.

/** As documented by their operators, without those that identify as a browser. */
export const aiCrawlers: readonly string[] = [
  // OpenAI: platform.openai.com/docs/bots
  "GPTBot",
  "OAI-SearchBot",
  "ChatGPT-User",
  // Anthropic: support.anthropic.com, "Does Anthropic crawl data from the web"
  "ClaudeBot",
  "Claude-User",
  "Claude-SearchBot",
  "Claude-Web",
  "anthropic-ai",
  // Google: developers.google.com/search/docs/crawling-indexing/google-common-crawlers
  "Google-CloudVertexBot",
  "GoogleOther",
  // Meta: developers.facebook.com/docs/sharing/webmasters/web-crawlers
  "meta-externalagent",
  "meta-externalfetcher",
  "FacebookBot",
  // Amazon: developer.amazon.com/amazonbot
  "Amazonbot",
  // Perplexity: docs.perplexity.ai/guides/bots
  "PerplexityBot",
  "Perplexity-User",
  // Common Crawl, whose archive most models are trained on: commoncrawl.org/ccbot
  "CCBot",
  // ByteDance
  "Bytespider",
  // Others that name themselves
  "AI2Bot",
  "Applebot-Extended",
  "cohere-ai",
  "cohere-training-data-crawler",
  "Diffbot",
  "DuckAssistBot",
  "FirecrawlAgent",
  "img2dataset",
  "ImagesiftBot",
  "MistralAI-User",
  "omgili",
  "PanguBot",
  "PetalBot",
  "Timpibot",
  "Webzio-Extended",
  "YouBot",
];
