// Names under which programs that look for weak spots introduce themselves in User-Agent; a list, no logic.

/** Only what is a scanner wherever it turns up: curl, Go and Python are what honest clients are made of. */
export const scanners: readonly string[] = [
  // Scanners of web applications
  "acunetix",
  "AppScan",
  "arachni",
  "Burp Suite",
  "Detectify",
  "jaeles",
  "Netsparker",
  "Nessus",
  "Nikto",
  "Nuclei",
  "OpenVAS",
  "Qualys",
  "skipfish",
  "sqlmap",
  "w3af",
  "Wapiti",
  "WPScan",
  "OWASP ZAP",
  // Guessing of paths, names and parameters
  "DirBuster",
  "dirsearch",
  "feroxbuster",
  "ffuf",
  "Fuzz Faster U Fool",
  "gobuster",
  "wfuzz",
  // Sweeps of the whole network
  "CensysInspect",
  "Expanse, a Palo Alto Networks company",
  "l9explore",
  "l9tcpid",
  "masscan",
  "Nmap Scripting Engine",
  "zgrab",
  "ZmEu",
  // Command injection by way of the name itself
  "${jndi:",
  "() {",
];
