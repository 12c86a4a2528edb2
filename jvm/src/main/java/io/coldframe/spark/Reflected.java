package io.coldframe.spark;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import scala.collection.Iterator;
import scala.collection.Seq;

/**
 * Calls methods by reflection: methods whose types differ between Scala 2.12 and 2.13, and methods of Hive's
 * classes, which Spark loads with a separate class loader.
 */
final class Reflected {
  private Reflected() {}

  static Object call(Object target, String name, Object... arguments) throws ReflectiveOperationException {
    Method method = method(target.getClass(), name, arguments.length);
    if (method == null) {
      throw new NoSuchMethodException(target.getClass().getName() + "." + name);
    }
    try {
      method.setAccessible(true);
      return method.invoke(target, arguments);
    } catch (InvocationTargetException e) {
      throw new ReflectiveOperationException(name + ": " + e.getCause(), e.getCause());
    }
  }

  /**
   * A method by name and number of arguments. Interfaces are searched first, since the class of a proxy may
   * be inaccessible.
   */
  private static Method method(Class<?> of, String name, int arguments) {
    for (Class<?> type = of; type != null; type = type.getSuperclass()) {
      for (Class<?> each : type.getInterfaces()) {
        Method method = method(each, name, arguments);
        if (method != null) {
          return method;
        }
      }
      for (Method own : type.getDeclaredMethods()) {
        if (own.getName().equals(name) && own.getParameterCount() == arguments) {
          return own;
        }
      }
    }
    return null;
  }

  static String text(Object target, String name) throws ReflectiveOperationException {
    Object result = call(target, name);
    return result == null ? null : result.toString();
  }

  /** The elements of the Seq that a method returns. */
  static List<Object> all(Object target, String name) throws ReflectiveOperationException {
    return all(call(target, name));
  }

  /** The elements of a Seq. */
  static List<Object> all(Object seq) {
    List<Object> elements = new ArrayList<>();
    for (Iterator<?> each = ((Seq<?>) seq).iterator(); each.hasNext(); ) {
      elements.add(each.next());
    }
    return elements;
  }
}
