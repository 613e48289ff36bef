package com.endpoint.sapwood;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.xml.parsers.DocumentBuilderFactory;
import org.junit.Test;
import org.w3c.dom.Element;
import org.w3c.dom.Node;
import org.w3c.dom.NodeList;

/** Everything that a person reads comes from resources, and is there in both languages. */
public class ResourcesTest {
  private static final Path MAIN = new File(System.getProperty("sapwood.app")).toPath();
  private static final Pattern ARGUMENT = Pattern.compile("%(\\d+\\$)?[.\\d]*[a-z%]");

  /** Name to texts: one of a string, several of an array or a plural. */
  private static Map<String, List<String>> texts(String folder) throws Exception {
    Map<String, List<String>> texts = new TreeMap<>();
    File file = MAIN.resolve("res/" + folder + "/strings.xml").toFile();
    Element root =
        DocumentBuilderFactory.newInstance().newDocumentBuilder().parse(file).getDocumentElement();
    NodeList children = root.getChildNodes();
    for (int i = 0; i < children.getLength(); i++) {
      if (children.item(i).getNodeType() == Node.ELEMENT_NODE) {
        Element element = (Element) children.item(i);
        List<String> here = new ArrayList<>();
        NodeList items = element.getElementsByTagName("item");
        for (int j = 0; j < items.getLength(); j++) {
          here.add(items.item(j).getTextContent());
        }
        if (items.getLength() == 0) {
          here.add(element.getTextContent());
        }
        texts.put(element.getTagName() + "/" + element.getAttribute("name"), here);
      }
    }
    return texts;
  }

  private static List<String> arguments(String text) {
    List<String> found = new ArrayList<>();
    for (Matcher matcher = ARGUMENT.matcher(text); matcher.find(); ) {
      found.add(matcher.group());
    }
    found.sort(null);
    return found;
  }

  private static List<Path> files(String folder, String suffix) throws IOException {
    try (Stream<Path> found = Files.walk(MAIN.resolve(folder))) {
      return found.filter(path -> path.toString().endsWith(suffix)).collect(Collectors.toList());
    }
  }

  private static String read(Path path) throws IOException {
    return new String(Files.readAllBytes(path), StandardCharsets.UTF_8);
  }

  @Test
  public void bothLanguagesHaveTheSameTextsWithTheSameArguments() throws Exception {
    Map<String, List<String>> english = texts("values");
    Map<String, List<String>> chinese = texts("values-b+zh+Hans");
    assertEquals(english.keySet(), chinese.keySet());
    for (Map.Entry<String, List<String>> entry : english.entrySet()) {
      String name = entry.getKey();
      List<String> other = chinese.get(name);
      if (!name.startsWith("plurals/")) { // Chinese has one form
        assertEquals(name, entry.getValue().size(), other.size());
      }
      for (int i = 0; i < other.size(); i++) {
        assertEquals(name, arguments(entry.getValue().get(i)), arguments(other.get(i)));
      }
    }
  }

  @Test
  public void whatHasWordsIsTranslated() throws Exception {
    Map<String, List<String>> chinese = texts("values-b+zh+Hans");
    Pattern word = Pattern.compile("[A-Za-z]{2}");
    for (Map.Entry<String, List<String>> entry : texts("values").entrySet()) {
      String text = entry.getValue().get(0).replaceAll(ARGUMENT.pattern(), "");
      boolean named = entry.getKey().equals("string/app_name");
      if (word.matcher(text).find() && !named) {
        String other = chinese.get(entry.getKey()).get(0);
        boolean han = other.codePoints().anyMatch(Character::isIdeographic);
        assertTrue(entry.getKey() + ": " + other, han);
      }
    }
  }

  @Test
  public void layoutsMenusAndManifestHoldNoTextOfTheirOwn() throws Exception {
    Pattern own =
        Pattern.compile("android:(text|hint|title|label|contentDescription)=\"(?!@string/)");
    List<Path> all = files("res", ".xml");
    all.add(MAIN.resolve("AndroidManifest.xml"));
    for (Path file : all) {
      Matcher found = own.matcher(read(file));
      assertTrue(file + " has a text of its own", !found.find());
    }
  }

  @Test
  public void theCodeShowsNoTextOfItsOwn() throws Exception {
    Pattern shown =
        Pattern.compile(
            "(setText|setTitle|setSubtitle|setHint|setMessage|setContentDescription|makeText|"
                + "announceForAccessibility|newPlainText|show)\\((\\w+, )?\"(?!\"\\))");
    for (Path file : files("java", ".java")) {
      Matcher found = shown.matcher(read(file));
      assertTrue(file + " shows a text of its own", !found.find());
    }
  }

  @Test
  public void everyTextIsUsed() throws Exception {
    StringBuilder users = new StringBuilder(read(MAIN.resolve("AndroidManifest.xml")));
    for (Path file : files("java", ".java")) {
      users.append(read(file));
    }
    for (Path file : files("res", ".xml")) {
      users.append(read(file));
    }
    for (String name : texts("values").keySet()) {
      String bare = name.substring(name.indexOf('/') + 1);
      String kind = name.replace("string-array", "array").split("/")[0];
      Pattern use = Pattern.compile("(R\\." + kind + "\\.|@" + kind + "/)" + bare + "\\b");
      assertTrue(name + " is not used", use.matcher(users).find());
    }
  }
}
